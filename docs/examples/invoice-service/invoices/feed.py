"""From a feed file to invoices.

A feed is CSV with a comment as its first line:

    # supplier=acme; currency=EUR; locale=en_GB
    number,date,description,quantity,unit_price,tax_rate
    A-1001,2026-03-02,Pallet wrap,12,3.40,0.20

Lines of one invoice follow each other and repeat its number.
"""

import csv
from pathlib import Path

from invoices.model import Invoice, Line
from invoices.money import InvalidAmount, parse_amount

COLUMNS = ("number", "date", "description", "quantity", "unit_price", "tax_rate")


class FeedError(ValueError):
    """A feed that cannot be read; names the file and the line."""

    def __init__(self, path, line, reason):
        super().__init__(f"{Path(path).name}:{line}: {reason}")
        self.path = str(path)
        self.line = line
        self.reason = reason


def read_header(path, first):
    """The fields of the comment on the first line."""
    if not first.startswith("#"):
        raise FeedError(path, 1, "the first line must be a comment with supplier and currency")
    fields = {}
    for part in first.lstrip("# ").strip().split(";"):
        name, _, value = part.strip().partition("=")
        fields[name] = value
    for name in ("supplier", "currency"):
        if not fields.get(name):
            raise FeedError(path, 1, f"the header has no {name}")
    return fields


def load_feed(path):
    """All invoices of one feed file."""
    path = Path(path)
    with path.open(encoding="utf-8", newline="") as file:
        header = read_header(path, file.readline())
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise FeedError(path, 2, f"expected the columns {', '.join(COLUMNS)}")
        return tuple(_invoices(path, header, rows))


def _invoices(path, header, rows):
    number, date, lines = None, "", []
    for index, row in enumerate(rows, 3):
        if number is not None and row["number"] != number:
            yield _invoice(header, number, date, lines)
            lines = []
        number, date = row["number"], row["date"]
        lines.append(_line(path, index, row))
    if lines:
        yield _invoice(header, number, date, lines)


def _invoice(header, number, date, lines):
    return Invoice(
        number=number,
        supplier=header["supplier"],
        date=date,
        currency=header["currency"],
        lines=tuple(lines),
    )


def _line(path, index, row):
    try:
        return Line(
            description=row["description"],
            quantity=int(row["quantity"]),
            unit_price=parse_amount(row["unit_price"]),
            tax_rate=row["tax_rate"],
        )
    except InvalidAmount as error:
        raise FeedError(path, index, str(error)) from error
    except ValueError:
        raise FeedError(path, index, f"quantity {row['quantity']!r} is no number") from None
