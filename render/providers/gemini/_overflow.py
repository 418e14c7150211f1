"""Overflow errors: whether an error says that the prompt exceeds the model's window.

Gemini API   400 INVALID_ARGUMENT
             The input token count (N) exceeds the maximum number of tokens allowed (M).
             The input token count exceeds the maximum number of tokens allowed M.
Agent        400 INVALID_ARGUMENT
Platform     Unable to submit request because the input token count is N but model only supports up to
             M. Reduce the input token count and try again.
"""

from typing import Final

from render.policy._provider import Overflow
from render.providers._overflow import REFUSED, numbers_in, patterns

_KINDS: Final = frozenset({"", "400", "INVALID_ARGUMENT"})
_TEXTS: Final = patterns(
    r"(?i)input token count (?:\(<n>\) )?exceeds the maximum number of tokens allowed ?\(?(?:<m>)?",
    r"(?i)input token count is <n> but (?:the )?model only supports up to <m>",
)


def overflow_of(status: int | None, kind: str, message: str) -> Overflow | None:
    """Read an error; None if it is about something else.

    `status` is the HTTP status, None inside a stream. `kind` is the most specific name that the provider
    gave: its status as a word.
    """
    if status not in REFUSED or kind not in _KINDS:
        return None
    return numbers_in(message, _TEXTS)
