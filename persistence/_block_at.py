"""The block at a logical path, found in a log that need not fit into memory.

A path is derived: the stem of a block, and from the second block with this stem on a number.  So a path
may mean two stems, and blocks of both are counted, from the beginning, until one has the path.
A DuckDB file is asked for the events that can have to do with it; any other store is read page by page.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from blocks import (
    Block,
    BlockAppended,
    Event,
    RangeCompacted,
    SummaryReplaced,
    TimelineId,
    decode_event,
    path_of,
    path_stem,
)
from persistence._candidates import is_needle
from persistence._duckdb import DuckDBStore
from persistence._large import STANDS_IN, fetching, whole
from persistence._store import EventStore

PAGE: Final = 2_000
ROWS: Final = 8
"""Rows that are taken from the database at once: those of older files may be large."""
_OTHER_LARGE: Final = f"{STANDS_IN} AND NOT contains(payload, '\"BlockAppended\"')"
"""Large events whose block, a summary, is not in their stand-in."""
_NUMBERED: Final = re.compile(r"(.+)\.([1-9][0-9]*)", re.DOTALL)
_SUMMARY: Final = "su:"
_CALL: Final = "tc:"


def block_at(store: EventStore, timeline: TimelineId, path: str) -> Block | None:
    """The original block at a path, or None; of the summaries at a path, the newest."""
    if isinstance(store, DuckDBStore):
        return _first(path, _likely(store, timeline, path))
    return _first(path, _all(store, timeline))


def _first(path: str, events: Iterable[Event]) -> Block | None:
    """The block at a path among the events of a log that can have to do with it."""
    ordinals = dict.fromkeys(stems_of(path), 0)
    summary: Block | None = None
    for event in events:
        if isinstance(event, RangeCompacted | SummaryReplaced):
            summary = event.summary if path_of(event.summary) == path else summary
        if not isinstance(event, BlockAppended):
            continue
        stem = path_stem(event.block)
        if stem in ordinals:
            ordinals[stem] += 1
            if path_of(event.block, ordinals[stem]) == path:
                return event.block
    return summary


def stems_of(path: str) -> tuple[str, ...]:
    """The stems that a block with this path can have."""
    numbered = _NUMBERED.fullmatch(path)
    return (path, numbered[1]) if numbered else (path,)


def _all(store: EventStore, timeline: TimelineId) -> Iterator[Event]:
    after = 0
    while page := store.read(timeline, after=after, limit=PAGE):
        after = page[-1][0]
        for _, event in page:
            yield event


def _likely(store: DuckDBStore, timeline: TimelineId, path: str) -> Iterator[Event]:
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
            for _, payload in whole((row[1:] for row in rows), fetch):
                yield decode_event(payload)


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
