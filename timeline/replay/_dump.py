"""The dump: one JSON line per model call, a stable format for external measurements.

All fields except the last, `ms`, are the same on every machine.
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
    """One request, as it is written to the dump."""

    call: int
    """The number of the call, from 0."""
    ts: float
    """The time of the call, in seconds since the epoch."""
    rendered: Rendered
    summaries: Sequence[SummaryCall]
    ms: float
    """The milliseconds that the engine needed for the request."""


class Dump(Protocol):
    """Called with each request that was sent."""

    def __call__(self, sent: Sent, /) -> None: ...


def dump_line(sent: Sent) -> bytes:
    """The line with its line break."""
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
    """A dump into `path`, which is created or replaced when the dump is complete."""
    with atomic_write(path) as file:
        yield lambda sent: _write(file, sent)


def _write(file: IO[bytes], sent: Sent) -> None:
    file.write(dump_line(sent))
