"""The interface of an API as seen by its server: the form of requests, the rules for them, and the form of answers.

Inside the fake provider, an answer consists of blocks of text, thinking and calls; a wire converts it to its API.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import attrs

from blocks.formats import Format, obj
from render import Json, Model
from timeline.billing import CacheStep
from timeline.fake_provider._reply import ApiError, Draft, Drafts, Reply, overlong

_BILLING: Final = "x-anthropic-billing-header:"
_PIECE_CHARS: Final = 24
_PIECES_MAX: Final = 100
"""Largest number of pieces of a streamed text; longer texts have longer pieces."""
Purpose: TypeAlias = Literal["answer", "count"]
"""What a request is for: an answer, or only the number of its tokens."""


@attrs.frozen(kw_only=True)
class Outgoing:
    """An answer, to be put into the form of an API."""

    id: str
    request: Json
    """The request that is answered."""
    model: Model
    answer: Drafts
    step: CacheStep
    """The billing of the request."""
    created: int
    """Seconds since the epoch."""
    new_id: Callable[[str], str]


def prompt_overflow(tokens: int, _: Json, model: Model) -> ApiError | None:
    """The error for a prompt that does not fit, where the room for output is not reserved."""
    return overlong(tokens, model.tokens_window) if tokens > model.tokens_window else None


@attrs.frozen(kw_only=True)
class Wire:
    """One API, as a table of functions without state."""

    provider: Format
    """Its name in `Model.provider`."""
    path: str
    """The path of its requests."""
    counts: str = ""
    """The path, below `path`, of requests that only count tokens; empty: there is none."""
    ids: tuple[str, str]
    """The prefixes of the ids of an answer and of a call."""

    key_error: Callable[[Mapping[str, str]], ApiError | None]
    """The error for missing headers. Some key is required; its value does not matter."""
    request_of: Callable[[Json, Mapping[str, str], Mapping[str, str]], Json | ApiError] = (
        lambda body, _path, _headers: body
    )
    """The request from its body, the fields of its path, and its headers; or the error."""
    shape_error: Callable[[Json, Purpose], ApiError | None]
    """The error for missing or unknown fields."""
    rule_error: Callable[[Json, Model], ApiError | None]
    """The error for a request of the right shape that breaks a rule of the provider."""
    length_error: Callable[[int, Json, Model], ApiError | None] = prompt_overflow
    """The error if a prompt of this many tokens does not fit."""
    output_asked: Callable[[Json], int | None]
    """Largest number of tokens of the answer, if the request has one."""

    tools: Callable[[Json], Iterable[tuple[str, Json]]]
    """The tools that the request offers, each with the schema of its input."""
    own_reply: Callable[[Json], Reply | None] = lambda _: None
    """A reply that the server gives without calling its model; None: it calls the model."""
    sign: Callable[[str, Json, Model], str] = lambda _text, _request, _model: ""
    """The signature that proves that thinking is the model's own."""

    message: Callable[[Outgoing], Json]
    """The whole answer as JSON."""
    stream: Callable[[Json, Sequence[Draft], Json], Iterator[bytes]]
    """The answer (its JSON, its drafts, the request) as a stream of events; the last one says that it is complete."""
    garbage: bytes
    """An incomplete event."""
    error: Callable[[ApiError, str], tuple[int, Json]]
    """The status and the JSON of a refusal, for a request with this id."""
    error_event: Callable[[ApiError], bytes]
    """The event of an error in the middle of a stream."""


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces of a stream."""
    size = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
    return (text[at : at + size] for at in range(0, len(text), size))


def event(data: Any, name: str = "") -> bytes:
    """A server-sent event as bytes."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


def unknown_field(request: Json, fields: frozenset[str]) -> str:
    """The first field that is not known; empty: all are known."""
    return next((name for name in request if name not in fields), "")


# A request's JSON, read without trusting its shape.


def child(value: Json, name: str) -> Json:
    """The object in this field; an empty one if there is none."""
    return obj(value.get(name))


def prompt_of(request: Json) -> list[Json]:
    """The system prompt of a request to the Messages API as the model sees it: without the first block if that is a
    billing header, which is not cached either."""
    system = blocks_of(request.get("system"))
    if system and str(system[0].get("text", "")).startswith(_BILLING):
        return system[1:]
    return system


def blocks_of(content: Any) -> list[Json]:
    """Content as a list of blocks; a plain text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[Json]", content) if isinstance(content, list) else []
