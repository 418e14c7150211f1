"""The entry point of a replay: takes a session and options, returns the result.

The session is replayed in memory. Its complete log is written to a database in one commit and read
back, so nothing is left half-written.
"""

from collections.abc import Sequence
from contextlib import closing, nullcontext
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from blocks import Recorded, TimelineId
from persistence import EventStore, MemoryStore, locate_store, open_store
from persistence.sessions import Session
from timeline.replay._dump import Dump
from timeline.replay._options import ReplayOptions
from timeline.replay._replay import Progress, Replay
from timeline.replay._replay_timeline import ReplayTimeline
from timeline.replay._report import result_of
from timeline.replay._reserve import reserve_store
from timeline.replay._result import ReplayResult


@attrs.frozen(kw_only=True)
class Replayed:
    """A finished replay with its log."""

    result: ReplayResult
    log: Sequence[Recorded] = attrs.field(repr=False)
    timeline: ReplayTimeline = attrs.field(repr=False)
    """The timeline that rendered its requests."""
    full: Sequence[tuple[int, float]] = attrs.field(repr=False)
    """Tokens and dollars of sending everything, for each call."""


def replay(
    session: Session,
    options: ReplayOptions | None = None,
    *,
    store: "str | PathLike[str] | None" = None,
    dump: Dump | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Replay a session; with `store` (a path or URL), save its log there.

    Raises:
        MisuseError: there is no such counter or policy; the window cannot even hold system prompt and
            tools; or the store already has a timeline of this name.
        StoreLockedError: another process has the store open.
    """
    return replay_with_log(session, options, store=store, dump=dump, progress=progress).result


def replay_with_log(
    session: Session,
    options: ReplayOptions | None = None,
    *,
    store: "str | PathLike[str] | None" = None,
    dump: Dump | None = None,
    progress: Progress | None = None,
) -> Replayed:
    """Like `replay`, but also returns the log, which a report needs."""
    options = options or ReplayOptions()
    name = TimelineId(options.name or session.name)
    place = nullcontext() if store is None else reserve_store(locate_store(store), name)
    with place as kept:
        running = Replay.begin(session, options, MemoryStore(), dump)
        running.run(progress)
        size = _written(running, kept)
        return Replayed(
            result=result_of(running, options.counter, size),
            log=running.replayed.timeline.events(),
            timeline=running.replayed,
            full=running.full,
        )


def _written(running: Replay, kept: EventStore | None) -> int:
    """Write the log to a database, and to `kept`, and compare; returns the size of a file with only this log."""
    name = running.replayed.timeline.id
    events = [event for _, event in running.replayed.timeline.events()]
    if kept is not None:
        kept.append(name, events, expected_version=0)
    with TemporaryDirectory(prefix="foldline-") as folder:
        path = Path(folder) / "replay.duckdb"
        with closing(open_store(path)) as store:
            store.append(name, events, expected_version=0)
        with closing(open_store(path)) as store:
            running.compare(store)
        return path.stat().st_size
