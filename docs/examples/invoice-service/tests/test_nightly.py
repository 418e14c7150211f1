import json
import logging
import tempfile
import unittest
from pathlib import Path

from invoices import run_nightly

FEED = """\
# supplier=acme; currency=EUR; locale=en_GB
number,date,description,quantity,unit_price,tax_rate
A-1,2026-03-02,Pallet wrap,12,3.40,0.20
"""


class Nightly(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = self.folder / "ledger.json"
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def put(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def test_a_feed_is_booked(self):
        self.put("acme-2026-03-02.csv", FEED)
        self.assertEqual(run_nightly(self.folder, self.ledger), 0)
        self.assertEqual(len(json.loads(self.ledger.read_text())), 1)

    def test_a_broken_feed_is_counted_and_the_others_are_booked(self):
        self.put("acme-2026-03-02.csv", FEED)
        self.put("borealis-2026-03-02.csv", "nonsense\n")
        self.assertEqual(run_nightly(self.folder, self.ledger), 1)
        self.assertEqual(len(json.loads(self.ledger.read_text())), 1)

    def test_an_empty_folder_is_no_failure(self):
        self.assertEqual(run_nightly(self.folder, self.ledger), 0)
