import unittest

from invoices import Invoice, Line, total_of
from invoices.totals import by_rate


def invoice(*lines):
    return Invoice(number="T-1", supplier="acme", date="2026-03-02", lines=tuple(lines))


class TotalOf(unittest.TestCase):
    def test_no_lines(self):
        self.assertEqual(total_of(invoice()), (0, 0, 0))

    def test_one_line(self):
        self.assertEqual(total_of(invoice(Line("Wrap", 10, 340, "0.20"))), (3400, 680, 4080))

    def test_two_rates(self):
        totals = total_of(invoice(Line("Wrap", 1, 1000, "0.20"), Line("Book", 1, 1000, "0.05")))
        self.assertEqual(totals, (2000, 250, 2250))

    def test_a_credit(self):
        self.assertEqual(total_of(invoice(Line("Return", -1, 1000, "0.20"))), (-1000, -200, -1200))

    def test_tax_is_rounded_once_per_rate(self):
        # 3 x 0.33 at 19%: 18.81 cents of tax, not 3 x 6.27 cents rounded one by one.
        lines = [Line(f"Screw {n}", 1, 33, "0.19") for n in range(3)]
        self.assertEqual(total_of(invoice(*lines)), (99, 19, 118))


class ByRate(unittest.TestCase):
    def test_amounts_of_one_rate_are_joined(self):
        found = by_rate(invoice(Line("A", 1, 100, "0.19"), Line("B", 2, 50, "0.19")))
        self.assertEqual(found, {"0.19": 200})
