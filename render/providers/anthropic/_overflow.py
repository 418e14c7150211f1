"""Overflow errors: whether an error says that the prompt exceeds the model's window.

Anthropic has no code for this, so the text is read. Only a refused request counts (status 400, or an error
inside a stream, which has no status): a rate limit or an overload may contain the same words.

    Anthropic   prompt is too long: N tokens > M maximum
                input length and `max_tokens` exceed context limit: N + output > M, decrease ...
                stop reason `model_context_window_exceeded`

A body with too many bytes (413) is not an overflow of the window.
"""

import re
from typing import Final

from render.policy._provider import Overflow
from render.providers._overflow import REFUSED, numbers_in, patterns

_STOPPED: Final = "model_context_window_exceeded"
_TYPES: Final = frozenset({"", "error", "invalid_request_error"})
"""Error types that may carry the text; "" if a gateway removed the type."""

_TEXTS: Final = re.compile(r"prompt is too long|exceed context limit", re.IGNORECASE)
_NUMBERS: Final = patterns(
    r"<n> tokens > <m>",
    r"context limit: <n> \+ [\d,_]+ > <m>",
)


def overflow_of(status: int | None, kind: str, message: str) -> Overflow | None:
    """Read an error or a stop reason; None if it is about something else.

    `status` is the HTTP status, None inside a stream. `kind` is the most specific name that the provider
    gave: its error code, its error type, or the stop reason.
    """
    if status not in REFUSED:
        return None
    if kind != _STOPPED and not (kind in _TYPES and _TEXTS.search(message)):
        return None
    return numbers_in(message, _NUMBERS) or Overflow()
