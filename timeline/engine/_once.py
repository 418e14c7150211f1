"""What came from somewhere else is appended once, however often it is delivered.

The view knows the sources of the window; of what was folded it has a filter, and where that says "perhaps"
the store is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Self

from blocks import AlreadyRecordedError, Block, BlockAppended, Event, Sources
from timeline._flow import Flow, RunBlocking
from timeline.engine._engine import Engine


class Appended(int):
    """The version after an append, and what of it was there already."""

    known: Mapping[str, int]
    """By source: the version of the newest block that came from there before; nothing was appended of
    these."""

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
    """Each once, in order; what is no block is refused later."""
    found: Iterable[object] = (getattr(block, "source", "") for block in blocks)
    return list(dict.fromkeys(one for one in found if isinstance(one, str) and one))


def folded_at(engine: Engine, source: str) -> Flow[int]:
    """Version of what came from a source, or in a response, and was folded since; 0: nothing."""
    if not source or source not in Sources(engine.view.state.sources):
        return 0
    from persistence import source_at

    version: int = yield RunBlocking(partial(source_at, engine.store, engine.id, source))
    return version


def refuse_folded_response(engine: Engine, response: str) -> Flow[None]:
    """Refuse a response that is in the folded part of the log.

    Raises:
        AlreadyRecordedError: with the version of its newest block.
    """
    if version := (yield from folded_at(engine, response)):
        raise AlreadyRecordedError(f"response {response!r}", version)
