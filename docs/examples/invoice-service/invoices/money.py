"""Amounts are integers of cents. Floats never enter."""

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

_CENTS = Decimal("0.01")
_PLAIN = re.compile(r"-?\d+(\.\d+)?")


class InvalidAmount(ValueError):
    """A text that is no amount of money."""

    def __init__(self, text, reason):
        super().__init__(f"invalid amount {text!r}: {reason}")
        self.text = text
        self.reason = reason


def parse_amount(text):
    """Cents of an amount as it stands in a feed: "1,234.56" -> 123456."""
    plain = text.strip().replace(" ", "").replace(",", "")
    if not _PLAIN.fullmatch(plain):
        raise InvalidAmount(text, "not a number")
    try:
        value = Decimal(plain)
    except InvalidOperation:
        raise InvalidAmount(text, "not a number") from None
    if value != value.quantize(_CENTS):
        raise InvalidAmount(text, "more than two decimals")
    return int(value * 100)


def multiply(cents, factor):
    """Cents times a decimal factor, rounded half to even."""
    return int((Decimal(cents) * Decimal(factor)).quantize(Decimal(1), ROUND_HALF_EVEN))


def format_amount(cents, currency="EUR"):
    """123456 -> "1,234.56 EUR"."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02d} {currency}"
