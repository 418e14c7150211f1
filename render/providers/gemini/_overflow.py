"""Overflow: does an error say that the prompt is longer than the model's window?

Gemini API   400 INVALID_ARGUMENT
             The input token count (N) exceeds the maximum number of tokens allowed (M).
             The input token count exceeds the maximum number of tokens allowed M.
Agent        400 INVALID_ARGUMENT
Platform     Unable to submit request because the input token count is N but model only supports up to
             M. Reduce the input token count and try again.
"""

import re
from typing import Final

from render.policy._provider import Overflow

_BAD_REQUEST: Final = 400
_KINDS: Final = frozenset({"", "400", "INVALID_ARGUMENT"})
_NUMBER: Final = r"(\d[\d,]{0,18})"
_TEXTS: Final = (
    re.compile(
        rf"input token count (?:\({_NUMBER}\) )?exceeds the maximum number of tokens allowed"
        rf" ?\(?(?:{_NUMBER})?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"input token count is {_NUMBER} but (?:the )?model only supports up to {_NUMBER}",
        re.IGNORECASE,
    ),
)


def overflow_of(status: int | None, kind: str, message: str) -> Overflow | None:
    """Read an error; None when it is about something else.

    `status` is the HTTP status, None inside a stream. `kind` is the most specific name the provider
    gave: its status in words.
    """
    if status not in (None, _BAD_REQUEST) or kind not in _KINDS:
        return None
    for pattern in _TEXTS:
        if found := pattern.search(message):
            tokens, most = found.groups()
            return Overflow(tokens=_number(tokens), tokens_max=_number(most))
    return None


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "")) if digits else None
