"""Overflow: the tokens that an error names, read in the way that providers share."""

import re
from collections.abc import Iterable
from typing import Final

from render.policy._provider import Overflow

REFUSED: Final = (None, 400)
"""The status of an error that may be an overflow, None inside a stream; a rate limit or an overload may quote the
same words."""
_NUMBER: Final = r"\d[\d,_]{0,18}"


def patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    """Each names the tokens of the input, `<n>`, and the maximum, `<m>`, as far as its text does."""
    return tuple(
        re.compile(text.replace("<n>", f"(?P<n>{_NUMBER})").replace("<m>", f"(?P<m>{_NUMBER})"))
        for text in texts
    )


def numbers_in(message: str, patterns: Iterable[re.Pattern[str]]) -> Overflow | None:
    """What the first pattern finds that fits; None: none does."""
    for pattern in patterns:
        if found := pattern.search(message):
            numbers = found.groupdict()
            return Overflow(tokens=_number(numbers.get("n")), tokens_max=_number(numbers.get("m")))
    return None


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "").replace("_", "")) if digits else None
