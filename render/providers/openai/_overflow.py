"""Overflow errors: whether an error says that the prompt exceeds the model's window.

OpenAI has an error code for this; compatible servers have their own texts.

    OpenAI      code `context_length_exceeded`, also inside a stream
                Your input exceeds the context window of this model. ...
                This model's maximum context length is M tokens. However, your messages resulted in
                N tokens ... / you requested R tokens (N in the messages, ... in the completion)
                Input tokens exceed the configured limit of M tokens. Your messages resulted in N tokens. ...
    vLLM        400, type `BadRequestError`, code 400
                This model's maximum context length is M tokens. However, your request has N input tokens ...
                ... You passed N input tokens and requested O output tokens. However, the model's context
                length is only M tokens ...
    llama.cpp   type `exceed_context_size_error`
                the request exceeds the available context size ... / request (N tokens) exceeds the
                available context size (M tokens), try increasing it

An answer that was cut off at its own limit (`max_output_tokens`, `length`) is not an overflow.
"""

import re
from typing import Final

from render.policy._provider import Overflow
from render.providers._overflow import REFUSED, numbers_in, patterns

_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TYPES: Final = frozenset(
    {"", "400", "BadRequestError", "error", "invalid_prompt", "invalid_request_error"}
)
"""Names with which the text may occur; "" if a gateway removed the name."""
_TEXTS: Final = re.compile(
    r"exceeds the context window|exceed the configured limit of|maximum context length is|context length is only"
    r"|exceeds the available context size|exceeds? the model's (?:maximum )?context length"
    r"|is longer than the maximum model length",
    re.IGNORECASE,
)
_NUMBERS: Final = patterns(
    r"maximum context length is <m> tokens.{0,200}?(?:resulted in|request has|passed) <n> ",
    r"maximum context length is <m> tokens.{0,200}?\(<n> in the messages",
    r"passed <n> input tokens.{0,200}?context length is only <m> tokens",
    r"request \(<n> tokens\) exceeds the available context size \(<m> tokens\)",
    r"\(length <n>\) is longer than the maximum model length of <m>",
    r"exceed the configured limit of <m> tokens.{0,200}?resulted in <n> ",
    r"maximum context length is <m> tokens",
    r"context length is only <m> tokens",
)


def overflow_of(status: int | None, kind: str, message: str) -> Overflow | None:
    """Read an error; None if it is about something else.

    `status` is the HTTP status, None inside a stream. `kind` is the most specific name that the provider
    gave: its error code or its error type.
    """
    if status not in REFUSED:
        return None
    if kind not in _CODES and not (kind in _TYPES and _TEXTS.search(message)):
        return None
    return numbers_in(message, _NUMBERS) or Overflow()
