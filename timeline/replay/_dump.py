"""The dump: one JSON line per model call, the contract for whoever measures from outside.

Everything but `ms` is the same on every machine; that field comes last.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import attrs
import msgspec

from render import Rendered
from timeline.replay._atomic import atomic_write
from timeline.replay._price import SummaryCall


@attrs.frozen(kw_only=True)
class Sent:
    """One request, as a dump tells it."""

    call: int
    """From 0."""
    ts: float
    """When the call was made, in seconds since the epoch."""
    rendered: Rendered
    summaries: Sequence[SummaryCall]
    ms: float
    """What the engine took to make the request."""


class Dump(Protocol):
    """Takes what was sent, call by call."""

    def __call__(self, sent: Sent, /) -> None: ...


def dump_line(sent: Sent) -> bytes:
    """The line, with its line break."""
    line = {
        "call": sent.call,
        "ts": sent.ts,
        "request": sent.rendered.request(),
        "summaries": [attrs.asdict(call) for call in sent.summaries],
        "tokens": sent.rendered.tokens,
        "ms": round(sent.ms, 3),
    }
    return msgspec.json.encode(line) + b"\n"


@contextmanager
def dump_to(path: Path) -> Generator[Dump]:
    """A dump into `path`, which appears, or is replaced, when all of it is written."""
    with atomic_write(path) as file:
        yield lambda sent: _write(file, sent)


def _write(file: IO[bytes], sent: Sent) -> None:
    file.write(dump_line(sent))
