"""Overflow errors: reading the numbers of tokens from a provider's message."""

import re
from collections.abc import Iterable
from typing import Final

from render.policy._provider import Overflow

REFUSED: Final = (None, 400)
"""Status values of an error that may be an overflow; None inside a stream. With another status (rate limit,
overload), the same words mean something else."""
_NUMBER: Final = r"\d[\d,_]{0,18}"


def patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    """Compiled patterns, in which `<n>` matches the tokens of the input and `<m>` the maximum."""
    return tuple(
        re.compile(text.replace("<n>", f"(?P<n>{_NUMBER})").replace("<m>", f"(?P<m>{_NUMBER})"))
        for text in texts
    )


def numbers_in(message: str, patterns: Iterable[re.Pattern[str]]) -> Overflow | None:
    """The numbers that the first matching pattern finds; None if no pattern matches."""
    for pattern in patterns:
        if found := pattern.search(message):
            numbers = found.groupdict()
            return Overflow(tokens=_number(numbers.get("n")), tokens_max=_number(numbers.get("m")))
    return None


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "").replace("_", "")) if digits else None
