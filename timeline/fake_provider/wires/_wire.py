"""The interface of an API as seen by its server: the form of requests, the rules for them, and the form of answers.

Inside the fake provider, an answer consists of blocks of text, thinking and calls; a wire converts it to its API.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from render import Json, Model
from timeline.billing import CacheStep
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._reply import Answer, Draft, Reply

_PIECE_CHARS: Final = 24
_PIECES_MAX: Final = 100
"""Largest number of pieces of a streamed text; longer texts have longer pieces."""


@attrs.frozen(kw_only=True)
class Spoken:
    """An answer, to be put into the form of an API."""

    id: str
    request: Json
    """The request that is answered."""
    model: Model
    answer: Answer
    step: CacheStep
    """The billing of the request."""
    created: int
    """Seconds since the epoch."""
    new_id: Callable[[str], str]


class Wire(Protocol):
    """One API. Wires have no state."""

    @property
    def provider(self) -> str:
        """Its name in `Model.provider`."""
        ...

    @property
    def path(self) -> str:
        """The path of its requests."""
        ...

    @property
    def counts(self) -> str:
        """The path, below `path`, of requests that only count tokens; empty: there is none."""
        ...

    @property
    def ids(self) -> tuple[str, str]:
        """The prefixes of the ids of an answer and of a call."""
        ...

    def unauthorised(self, headers: Mapping[str, str]) -> ApiError | None:
        """The error for missing headers. Some key is required; its value does not matter."""
        ...

    def received(
        self, body: Json, place: Mapping[str, str], headers: Mapping[str, str]
    ) -> Json | ApiError:
        """The request from its body, path and headers, or the error."""
        ...

    def misshapen(self, request: Json, *, counted: bool = False) -> ApiError | None:
        """The error for missing or unknown fields; `counted`: the request only counts tokens."""
        ...

    def unlawful(self, request: Json, model: Model) -> ApiError | None:
        """The error for a request of the right shape that breaks a rule of the provider."""
        ...

    def too_long(self, tokens: int, request: Json, model: Model) -> ApiError | None:
        """The error if a prompt of this many tokens does not fit."""
        ...

    def output_max(self, request: Json, model: Model) -> int:
        """Largest number of tokens of the answer."""
        ...

    def asked(self, request: Json) -> Json:
        """The request in the form of the Messages API, for the responder."""
        ...

    def unasked(self, request: Json) -> Reply | None:
        """A reply that the server gives without calling its model; None: it calls the model."""
        ...

    def sign(self, text: str, request: Json, model: Model) -> str:
        """The signature that proves that thinking is the model's own."""
        ...

    def message(self, spoken: Spoken) -> Json:
        """The whole answer as JSON."""
        ...

    def events(self, message: Json, drafts: Sequence[Draft], request: Json) -> Iterator[bytes]:
        """The answer as a stream of events; the last one says that it is complete."""
        ...

    def garbage(self) -> bytes:
        """An incomplete event."""
        ...

    def error(self, error: ApiError, request_id: str) -> tuple[int, Json]:
        """The status and the JSON of a refusal."""
        ...

    def error_event(self, error: ApiError) -> bytes:
        """The event of an error in the middle of a stream."""
        ...


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces of a stream."""
    size = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
    return (text[at : at + size] for at in range(0, len(text), size))


def event(data: Any, name: str = "") -> bytes:
    """A server-sent event as bytes."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


def unknown_field(request: Json, known: frozenset[str]) -> str:
    """The first field that is not known; empty: all are known."""
    return next((name for name in request if name not in known), "")
