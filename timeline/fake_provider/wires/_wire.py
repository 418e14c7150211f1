"""One API as its server sees it: what a request has to be, what it says of it, how it answers.

Inside, an answer is what a model says in blocks of text, thinking and calls; a wire puts it as its API does.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from render import Json, Model
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._reply import Answer, Draft, Reply
from timeline.replay._cache import CacheStep

_PIECE_CHARS: Final = 24
_PIECES_MAX: Final = 100
"""A long text comes in longer pieces, not in more."""


@attrs.frozen(kw_only=True)
class Spoken:
    """An answer on its way to be put as an API does."""

    id: str
    request: Json
    """What is answered."""
    model: Model
    answer: Answer
    step: CacheStep
    """How its request was billed."""
    created: int
    """Seconds since the epoch."""
    new_id: Callable[[str], str]


class Wire(Protocol):
    """One API.  Wires have no state."""

    @property
    def provider(self) -> str:
        """What `Model.provider` calls it."""
        ...

    @property
    def path(self) -> str:
        """Where its requests go."""
        ...

    @property
    def counts(self) -> str:
        """Where, below `path`, requests go that are to be counted; empty: nowhere."""
        ...

    @property
    def ids(self) -> tuple[str, str]:
        """How the ids of an answer and of a call begin."""
        ...

    def unauthorised(self, headers: Mapping[str, str]) -> ApiError | None:
        """What is missing from a request's headers; any key will do, but there must be one."""
        ...

    def received(
        self, body: Json, place: Mapping[str, str], headers: Mapping[str, str]
    ) -> Json | ApiError:
        """A request, of its body and of what its path and its headers say, or why there is none."""
        ...

    def misshapen(self, request: Json, *, counted: bool = False) -> ApiError | None:
        """What is missing from a request, or too much in it; `counted`: its tokens are to be counted only."""
        ...

    def unlawful(self, request: Json, model: Model) -> ApiError | None:
        """What the provider's rules have against a request of the right shape."""
        ...

    def too_long(self, tokens: int, request: Json, model: Model) -> ApiError | None:
        """A prompt of so many tokens does not fit."""
        ...

    def output_max(self, request: Json, model: Model) -> int:
        """Tokens that the answer may have."""
        ...

    def asked(self, request: Json) -> Json:
        """The request in the words of the Messages API, for who answers."""
        ...

    def unasked(self, request: Json) -> Reply | None:
        """What the server answers by itself; None: its model answers."""
        ...

    def sign(self, text: str, request: Json, model: Model) -> str:
        """The proof that thinking is the model's own."""
        ...

    def message(self, spoken: Spoken) -> Json:
        """The whole answer."""
        ...

    def events(self, message: Json, drafts: Sequence[Draft], request: Json) -> Iterator[bytes]:
        """The same as a stream; the last one says that it is complete."""
        ...

    def garbage(self) -> bytes:
        """An event that breaks off."""
        ...

    def error(self, error: ApiError, request_id: str) -> tuple[int, Json]:
        """A refusal: its status and its JSON."""
        ...

    def error_event(self, error: ApiError) -> bytes:
        """A refusal in the middle of a stream."""
        ...


def pieces(text: str) -> Iterator[str]:
    """A text as a stream says it."""
    size = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
    return (text[at : at + size] for at in range(0, len(text), size))


def event(data: Any, name: str = "") -> bytes:
    """One event on the wire."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


def unknown_field(request: Json, known: frozenset[str]) -> str:
    """The first field that the API does not know; empty: it knows all."""
    return next((name for name in request if name not in known), "")
