"""The block at a logical path, found in a log that need not fit into memory.

A path is derived (see `blocks.Naming`): from a version, which is read, or from the stem of a block and, from
the second block with this stem on, a number.  So such a path may mean two stems, and blocks of both are
counted, from the beginning, until one has the path.
A DuckDB file is asked for the events that can have to do with it; any other store is read page by page.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from blocks import (
    Block,
    BlockAppended,
    Event,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryReplaced,
    TimelineId,
    decode_event,
    numbered,
    path_at,
    path_of,
    path_stem,
    turn_in,
    version_in,
)
from persistence._store import EventStore
from persistence.duckdb._large_events import STANDS_IN, fetching, whole
from persistence.duckdb._store import DuckDBStore
from persistence.search._candidates import is_needle

PAGE: Final = 2_000
ROWS: Final = 8
"""Rows that are taken from the database at once: those of older files may be large."""
_OTHER_LARGE: Final = f"{STANDS_IN} AND NOT contains(payload, '\"BlockAppended\"')"
"""Large events whose block, a summary, is not in their stand-in."""
_SUMMARY: Final = "su:"
_CALL: Final = "tc:"


def block_at(store: EventStore, timeline: TimelineId, path: str) -> Block | None:
    """The original block at a path, or None; of a summary that was rewritten, as it is now."""
    version = version_in(path)
    if version:
        return _named(store, timeline, path, version)
    if isinstance(store, DuckDBStore):
        return _first(path, _likely(store, timeline, path))
    return _first(path, _all(store, timeline))


def _named(store: EventStore, timeline: TimelineId, path: str, version: int) -> Block | None:
    """The block of a version, if this is its path."""
    page = store.read(timeline, after=version - 1, limit=1)
    event = page[0][1] if page and page[0][0] == version else None
    if isinstance(event, BlockAppended):
        return event.block if path_at(event.block, version) == path else None
    if not isinstance(event, RangeCompacted) or path_at(event.summary, version) != path:
        return None
    stem = path_stem(event.summary)
    later = (
        _likely(store, timeline, stem)
        if isinstance(store, DuckDBStore)
        else _all(store, timeline, version)
    )
    summary = event.summary
    for _, other in later:
        if isinstance(other, SummaryReplaced) and other.compaction == version:
            summary = other.summary if path_stem(other.summary) == stem else summary
    return summary


def _first(path: str, events: Iterable[Recorded]) -> Block | None:
    """The block at a path among the events of a log that can have to do with it.

    Blocks are counted turn by turn.  Where turns have names with dots in them, a path of one can look
    like that of another: it is the one's whose name has none; so it is named, and so it is read.
    """
    owner = turn_in(path)
    own, alike = dict.fromkeys(stems_of(path), 0), dict.fromkeys(stems_of(path), 0)
    other: Block | None = None
    summaries = _Summaries(path)
    for version, event in events:
        if not isinstance(event, BlockAppended):
            summaries.add(version, event)
            continue
        block, stem = event.block, path_stem(event.block)
        if stem not in own:
            continue
        alike[stem] += 1
        if other is None and path_of(block, alike[stem]) == path:
            other = block
        if block.turn == owner and not isinstance(block, RangeSummary):
            own[stem] += 1
            if path_of(block, own[stem]) == path:
                return block
    return summaries.found or other


class _Summaries:
    """The summaries that compactions wrote, counted as blocks are."""

    def __init__(self, path: str) -> None:
        self.found: Block | None = None
        self._path = path
        self._counts = dict.fromkeys(stems_of(path), 0)
        self._version = 0

    def add(self, version: int, event: Event) -> None:
        """Note the next event, if it is about a summary."""
        if not isinstance(event, RangeCompacted | SummaryReplaced):
            return
        stem = path_stem(event.summary)
        if stem not in self._counts:
            return
        if isinstance(event, SummaryReplaced):
            self.found = event.summary if event.compaction == self._version else self.found
            return
        self._counts[stem] += 1
        if path_of(event.summary, self._counts[stem]) == self._path:
            self.found, self._version = event.summary, version


def stems_of(path: str) -> tuple[str, ...]:
    """The stems that a block with this path can have."""
    stem, _ = numbered(path)
    return tuple(dict.fromkeys((path, stem)))


def _all(store: EventStore, timeline: TimelineId, after: int = 0) -> Iterator[Recorded]:
    while page := store.read(timeline, after=after, limit=PAGE):
        after = page[-1][0]
        yield from page


def _likely(store: DuckDBStore, timeline: TimelineId, path: str) -> Iterator[Recorded]:
    """Every event that can have to do with a path, oldest first."""
    kinds = ["BlockAppended"]
    if path.startswith(_SUMMARY):
        kinds += ["RangeCompacted", "SummaryReplaced"]
    conditions = [_OTHER_LARGE]
    given: list[object] = [timeline]
    for stem in stems_of(path):
        needles = _needles(stem)
        conditions.append(" AND ".join(["true", *["contains(payload, ?)"] * len(needles)]))
        given += needles
    kind = " OR ".join(["contains(payload, ?)"] * len(kinds))
    statement = (  # the conditions are ours; the path is bound
        "SELECT timeline, seq, payload FROM events JOIN timelines USING (timeline)"  # noqa: S608
        f" WHERE name = ? AND (({') OR ('.join(conditions)})) AND ({kind}) ORDER BY seq"
    )
    given += kinds
    with store.inspect() as (cursor, _), store.inspect() as (second, _):
        cursor.execute(statement, given)
        while rows := cursor.fetchmany(ROWS):
            fetch = fetching(second, rows[0][0])
            for version, payload in whole((row[1:] for row in rows), fetch):
                yield version, decode_event(payload)


def _needles(stem: str) -> list[str]:
    """What the payload of every block with this stem contains.

    The names between the dots, wherever turn, kind and call id begin.  A turn begins where the stem
    does, and a call id or a name ends where it does, so there the JSON has a quotation mark.
    """
    inner = stem.rpartition(".")[0] if stem.startswith(_CALL) else stem
    names = inner.partition(":")[2].split(".")
    last = len(names) - 1
    found = {
        ('"' if index == 0 else "") + name + ('"' if index == last else "")
        for index, name in enumerate(names)
        if is_needle(name)
    }
    return sorted(found)
