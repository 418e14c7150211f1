"""Full-text search over the blocks of a store: whatever a prompt no longer shows is found here.

Two passes. The first looks at every candidate and keeps the best; the second works out the logical
paths of those, for which it has to know how many blocks before them have the same stem.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge, nlargest
from operator import itemgetter
from typing import Final, TypeAlias

import attrs

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    MisuseError,
    Naming,
    Recorded,
    TimelineId,
    path_at,
    path_of,
    path_stem,
    tag_of,
    version_in,
)
from persistence._retention import kept_of
from persistence._store import BlockIndex, EventStore, TurnChange
from persistence.search._query import Query, searched_text
from persistence.search._ranking import score, snippet
from persistence.search._scan import index_of, names_left

LIMIT: Final = 20
LIMIT_MAX: Final = 1_000

_Place: TypeAlias = tuple[TimelineId, int]


@attrs.frozen
class Candidate:
    """A block that may match, and where it is."""

    timeline: TimelineId
    version: int
    at: float
    block: Block


_Scored: TypeAlias = tuple[float, Candidate]


@attrs.frozen(kw_only=True)
class Hit:
    """A block that answers a query."""

    timeline: TimelineId
    version: int
    block: BlockId
    path: str
    """What `Timeline.read` takes."""
    type: str
    """The block's kind."""
    at: float
    """When it was appended, in seconds since the epoch."""
    score: float
    """How well it answers: occurrences of the query's words, against the length of the block."""
    snippet: str
    """The piece of its text where most of the query is together."""
    matches: tuple[tuple[int, int], ...]
    """Start and end of each match in the snippet."""


def search_blocks(
    store: EventStore, query: str, timeline: TimelineId | None = None, limit: int = LIMIT
) -> Sequence[Hit]:
    """The blocks that match a query, best first, of equal ones the newest; of one timeline or all.

    Words must all occur, in any case, also inside longer words; `"a phrase"` occurs as it stands;
    `-word` must not occur; `type:react.tool.result` and `turn:t3` say where to look.

    Raises:
        MisuseError: the query asks for nothing or is too long, or the limit is not in 1..1000.
        ClosedError: the store is closed.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise MisuseError(f"limit={limit}: give a number from 1 to {LIMIT_MAX:,}")
    wanted, index = Query.read(query), index_of(store)
    best = nlargest(limit, _scored(index, wanted, timeline), key=_rank)
    paths = _paths(store, index, [candidate for _, candidate in best])
    return [_hit(wanted, points, found, paths) for points, found in best]


def _scored(index: BlockIndex, query: Query, timeline: TimelineId | None) -> Iterator[_Scored]:
    words = {word for needle in query.wanted for word in needle.words}
    for name, (version, event) in index.candidates(words, query.types, timeline):
        if not isinstance(event, BlockAppended) or not query.accepts(event.block):
            continue
        folded = searched_text(event.block).casefold()
        if query.matches(folded):
            yield score(query, folded), Candidate(name, version, event.at, event.block)


def _rank(scored: _Scored) -> tuple[float, float, int, str]:
    points, found = scored
    return points, found.at, found.version, found.timeline


def _paths(store: EventStore, index: BlockIndex, chosen: Sequence[Candidate]) -> dict[_Place, str]:
    """The paths of candidates, as `Timeline.read` derives them."""
    by_timeline: dict[TimelineId, list[Candidate]] = {}
    for candidate in sorted(chosen, key=lambda each: each.version):
        by_timeline.setdefault(candidate.timeline, []).append(candidate)
    paths: dict[_Place, str] = {}
    for timeline, candidates in by_timeline.items():
        versions = {candidate.version for candidate in candidates}
        if kept_of(store, timeline).forgotten:
            names = ((version, path) for version, _, path in names_left(store, timeline))
            paths |= {(timeline, version): path for version, path in names if version in versions}
            continue
        stems = {path_stem(candidate.block) for candidate in candidates}
        last = candidates[-1].version
        turns = index.turns(timeline, last)
        for version, path in _named(turns, index.related(timeline, stems, last=last)):
            if version in versions:
                paths[timeline, version] = path
    return paths


def _named(turns: Iterable[TurnChange], related: Iterable[Recorded]) -> Iterator[tuple[int, str]]:
    """Blocks by version, with their paths, given when turns began and all events of the same stems."""
    naming, counts = Naming(), Counter[tuple[str, str]]()
    for version, met in merge(((turn.version, turn) for turn in turns), related, key=itemgetter(0)):
        if isinstance(met, TurnChange):
            naming.meet(met.turn, is_result=met.is_result)
        elif isinstance(met, BlockAppended):
            block, stem = met.block, path_stem(met.block)
            counts[stem, block.turn] += 1
            path = naming.path(block, version)
            certain = version_in(path) or path == path_of(block, counts[stem, block.turn])
            yield version, path if certain else path_at(block, version)


def _hit(query: Query, points: float, found: Candidate, paths: dict[_Place, str]) -> Hit:
    text, matches = snippet(query, searched_text(found.block))
    return Hit(
        timeline=found.timeline,
        version=found.version,
        block=found.block.id,
        path=paths[found.timeline, found.version],
        type=tag_of(found.block),
        at=found.at,
        score=points,
        snippet=text,
        matches=matches,
    )
