import tempfile
import unittest
from pathlib import Path

from invoices import load_feed
from invoices.feed import FeedError

HEADER = "# supplier=acme; currency=EUR; locale=en_GB\n"
COLUMNS = "number,date,description,quantity,unit_price,tax_rate\n"


def feed(*rows, header=HEADER, columns=COLUMNS):
    folder = tempfile.mkdtemp()
    path = Path(folder, "acme-2026-03-02.csv")
    path.write_text(header + columns + "".join(row + "\n" for row in rows), encoding="utf-8")
    return path


class LoadFeed(unittest.TestCase):
    def test_one_line(self):
        (invoice,) = load_feed(feed("A-1,2026-03-02,Pallet wrap,12,3.40,0.20"))
        self.assertEqual(invoice.key, "acme/A-1")
        self.assertEqual(invoice.lines[0].unit_price, 340)

    def test_lines_of_one_invoice_belong_together(self):
        (invoice,) = load_feed(
            feed("A-1,2026-03-02,Pallet wrap,12,3.40,0.20", "A-1,2026-03-02,Tape,3,1.10,0.20")
        )
        self.assertEqual(len(invoice.lines), 2)

    def test_two_invoices(self):
        invoices = load_feed(
            feed("A-1,2026-03-02,Pallet wrap,12,3.40,0.20", "A-2,2026-03-02,Tape,3,1.10,0.20")
        )
        self.assertEqual([invoice.number for invoice in invoices], ["A-1", "A-2"])

    def test_an_empty_feed_has_no_invoices(self):
        self.assertEqual(load_feed(feed()), ())

    def test_currency_comes_from_the_header(self):
        header = "# supplier=borealis; currency=SEK; locale=en_GB\n"
        (invoice,) = load_feed(feed("B-1,2026-03-02,Boxes,1,10.00,0.25", header=header))
        self.assertEqual(invoice.currency, "SEK")

    def test_a_missing_header_is_refused(self):
        with self.assertRaisesRegex(FeedError, "first line must be a comment"):
            load_feed(feed(header=""))

    def test_a_header_without_supplier_is_refused(self):
        with self.assertRaisesRegex(FeedError, "no supplier"):
            load_feed(feed(header="# currency=EUR\n"))

    def test_other_columns_are_refused(self):
        with self.assertRaisesRegex(FeedError, "expected the columns"):
            load_feed(feed(columns="number,date\n"))

    def test_a_bad_amount_names_its_line(self):
        with self.assertRaisesRegex(FeedError, r"acme-2026-03-02\.csv:4: invalid amount"):
            load_feed(feed("A-1,2026-03-02,Wrap,1,1.00,0.20", "A-2,2026-03-02,Tape,1,x,0.20"))

    def test_a_bad_quantity_names_its_line(self):
        with self.assertRaisesRegex(FeedError, "quantity 'many' is no number"):
            load_feed(feed("A-1,2026-03-02,Wrap,many,1.00,0.20"))
