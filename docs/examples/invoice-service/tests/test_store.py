import tempfile
import unittest
from pathlib import Path

from invoices import Invoice, Line, total_of
from invoices.store import Ledger

WRAP = Invoice("A-1", "acme", "2026-03-02", lines=(Line("Wrap", 10, 340, "0.20"),))


class LedgerFile(unittest.TestCase):
    def setUp(self):
        self.path = Path(tempfile.mkdtemp(), "ledger.json")

    def test_a_new_ledger_is_empty(self):
        self.assertEqual(Ledger(self.path).entries, [])

    def test_what_is_booked_is_there_after_saving(self):
        ledger = Ledger(self.path)
        ledger.book(WRAP, total_of(WRAP))
        ledger.save()
        self.assertEqual(Ledger(self.path).entries[0]["gross"], 4080)

    def test_without_saving_nothing_is_written(self):
        Ledger(self.path).book(WRAP, total_of(WRAP))
        self.assertFalse(self.path.exists())

    def test_entries_of_one_day(self):
        ledger = Ledger(self.path)
        ledger.book(WRAP, total_of(WRAP))
        self.assertEqual(len(ledger.on("2026-03-02")), 1)
        self.assertEqual(ledger.on("2026-03-03"), [])
