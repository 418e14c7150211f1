"""Blocks from another program are appended once, however often they are delivered.

The view knows the sources of the window. For folded blocks it has a filter; if the filter says "perhaps",
the store is queried.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Self

from blocks import AlreadyRecordedError, Block, BlockAppended, Event, Sources
from timeline._flow import Flow, RunBlocking
from timeline.engine._engine import Engine


class Appended(int):
    """The version after an append, and the sources that were already in the log."""

    known: Mapping[str, int]
    """For each source that was already in the log: the version of its newest block. No block of these sources was
    appended."""

    def __new__(cls, version: int, known: Mapping[str, int]) -> Self:
        made = super().__new__(cls, version)
        made.known = known
        return made


def append_once(engine: Engine, blocks: Sequence[Block], at: float | None) -> Flow[Appended]:
    """Append the blocks whose sources are not in the log, in one commit."""
    sources = _sources(blocks)
    if not sources:
        return Appended((yield from engine.append(blocks, at=at)), {})
    events = engine.appended(blocks, at=at)
    return (yield from engine.repeated(partial(_once, engine, events, sources)))


def _once(engine: Engine, events: Sequence[Event], sources: Sequence[str]) -> Flow[Appended]:
    known: dict[str, int] = {}
    for source in sources:
        version = engine.view.sourced_at(source) or (yield from folded_at(engine, source))
        known.update({source: version} if version else {})
    new = [e for e in events if not (isinstance(e, BlockAppended) and e.block.source in known)]
    version = (yield from engine.append_sealed(new)) if new else engine.version
    return Appended(version, known)


def _sources(blocks: Sequence[object]) -> Sequence[str]:
    """Each source once, in order; values that are not blocks are refused later."""
    found: Iterable[object] = (getattr(block, "source", "") for block in blocks)
    return list(dict.fromkeys(one for one in found if isinstance(one, str) and one))


def folded_at(engine: Engine, source: str) -> Flow[int]:
    """Version of a folded block that came from this source or response; 0: there is none."""
    if not source or source not in Sources(engine.view.state.sources):
        return 0
    from persistence import source_at

    version: int = yield RunBlocking(partial(source_at, engine.store, engine.id, source))
    return version


def refuse_folded_response(engine: Engine, response: str) -> Flow[None]:
    """Refuse a response that is in the folded part of the log.

    Raises:
        AlreadyRecordedError: the response is in that part; the error has the version of its newest block.
    """
    if version := (yield from folded_at(engine, response)):
        raise AlreadyRecordedError(f"response {response!r}", version)
