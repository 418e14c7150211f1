"""What an invoice is."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """One line of an invoice."""

    description: str
    quantity: int
    unit_price: int
    """In cents."""
    tax_rate: str
    """A decimal fraction, as text: "0.19"."""


@dataclass(frozen=True)
class Invoice:
    """An invoice as a supplier sent it."""

    number: str
    supplier: str
    date: str
    currency: str = "EUR"
    lines: tuple = field(default=())

    @property
    def key(self):
        """What makes an invoice the same invoice: supplier and number."""
        return f"{self.supplier}/{self.number}"
