"""What a replay writes: files that are complete or absent, the dump, a timeline in a store.

The dump has one JSON line per model call, a stable format for external measurements; all fields except the
last, `ms`, are the same on every machine.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

import attrs
import msgspec

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import EventStore, StoreLocation
from render import Rendered
from timeline.billing import SummaryCall


@attrs.frozen(kw_only=True)
class DumpRecord:
    """One request, as it is written to the dump."""

    call: int
    """The number of the call, from 0."""
    ts: float
    """The time of the call, in seconds since the epoch."""
    rendered: Rendered
    summaries: Sequence[SummaryCall]
    ms: float
    """The milliseconds that the engine needed for the request."""


Dump: TypeAlias = Callable[[DumpRecord], None]
"""Called with each request that was sent."""


@contextmanager
def dump_to(path: Path) -> Generator[Dump]:
    """A dump into `path`, which is created or replaced when the dump is complete."""
    with atomic_write(path) as file:

        def dump(sent: DumpRecord) -> None:
            line = {
                "call": sent.call,
                "ts": sent.ts,
                "request": sent.rendered.request(),
                "summaries": [attrs.asdict(call) for call in sent.summaries],
                "tokens": sent.rendered.tokens,
                "ms": round(sent.ms, 3),
            }
            file.write(msgspec.json.encode(line) + b"\n")

        yield dump


@contextmanager
def atomic_write(path: Path) -> Generator[IO[bytes]]:
    """A temporary file beside `path` that is renamed to it at the end, or deleted after an error.

    Anything but an ordinary file (`/dev/stdout`, a pipe) is written directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, str(part)):  # None: of a write
            error.filename = str(path)
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def reserve_store(where: StoreLocation, name: TimelineId) -> Generator[EventStore]:
    """Open the store at a location and check that the timeline's name is free.

    If the store is new and the timeline was not created, the store is deleted again.

    Raises:
        MisuseError: the store already has this timeline, or no store can be at that location.
        StoreError: the store cannot be opened.
    """
    is_new = not where.exists()
    try:
        with closing(where.open()) as store:
            is_new = is_new and not store.list()
            _check_free(store, where, name)
            yield store
    except StoreLockedError:
        raise
    except BaseException:
        if is_new:
            where.remove()
        raise


def _check_free(store: EventStore, where: StoreLocation, name: TimelineId) -> None:
    if store.head(name):
        raise MisuseError(
            f"{where} already has a timeline {name!r}; give another store, or, to one session, another name"
        )
