"""Full-text search over the blocks of a store, including those that a prompt no longer shows.

There are two passes. The first scores every candidate and keeps the best; the second computes their logical
paths, for which it has to count the earlier blocks of the turn with the same stem.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from heapq import heappush, heappushpop, merge
from itertools import chain
from operator import attrgetter, itemgetter
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

STRETCHES_MAX: Final = 32
"""With more stretches than this, the log is read from the beginning instead."""

_Place: TypeAlias = tuple[TimelineId, int]


@attrs.frozen
class Candidate:
    """A block that matches a query, and its place."""

    timeline: TimelineId
    version: int
    at: float
    block: Block


_Scored: TypeAlias = tuple[float, Candidate]


@attrs.frozen(kw_only=True)
class Hit:
    """A block in the result of a search."""

    timeline: TimelineId
    version: int
    block: BlockId
    path: str
    """The block's path; `Timeline.read` accepts it."""
    type: str
    """The block's kind."""
    at: float
    """When it was appended, in seconds since the epoch."""
    score: float
    """How well the block answers the query: occurrences of the query's words, relative to the length of the block."""
    snippet: str
    """The piece of its text with most of the query's words close together."""
    matches: tuple[tuple[int, int], ...]
    """Start and end of each match in the snippet."""


def search_blocks(
    store: EventStore,
    query: str,
    timeline: TimelineId | None = None,
    limit: int = LIMIT,
    *,
    hidden: bool = False,
) -> Sequence[Hit]:
    """The blocks of one timeline or of all that match a query, best first; of equally good ones, the newest first.

    All words must occur, in any case, also inside longer words.  `"a phrase"` must occur in this order; `-word` must
    not occur; `type:react.tool.result` and `turn:t3` restrict kind and turn.  Blocks that are hidden on request are
    found only with `hidden`; without it the answer is the same as if they were not there.

    Raises:
        MisuseError: the query has no search term or is too long, or the limit is not in 1..1000.
        ClosedError: the store is closed.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise MisuseError(f"limit={limit}: give a number from 1 to {LIMIT_MAX:,}")
    wanted, index = Query.read(query), index_of(store)

    @cache
    def withheld(name: TimelineId) -> Collection[BlockId]:
        return store.load_window(name).withheld

    def is_hidden(candidate: Candidate) -> bool:
        return not hidden and candidate.block.id in withheld(candidate.timeline)

    best = _best(_scored(index, wanted, timeline), limit, is_hidden)
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


def _best(
    found: Iterable[_Scored], limit: int, is_hidden: Callable[[Candidate], bool]
) -> list[_Scored]:
    """The best candidates that are not hidden, best first; only those are asked about that would be among the best."""
    best: list[tuple[tuple[float, float, int, str], int, _Scored]] = []
    for number, scored in enumerate(found):
        rank = _rank(scored)
        if (len(best) == limit and rank <= best[0][0]) or is_hidden(scored[1]):
            continue
        (heappushpop if len(best) == limit else heappush)(best, (rank, -number, scored))
    return [scored for _, _, scored in sorted(best, reverse=True)]


def _rank(scored: _Scored) -> tuple[float, float, int, str]:
    points, found = scored
    return points, found.at, found.version, found.timeline


def _paths(store: EventStore, index: BlockIndex, chosen: Sequence[Candidate]) -> dict[_Place, str]:
    """The paths of candidates, as `Timeline.read` accepts them, by timeline and version."""
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
        for version, path in _counted(index, timeline, candidates):
            if version in versions:
                paths[timeline, version] = path
    return paths


def _counted(
    index: BlockIndex, timeline: TimelineId, candidates: Sequence[Candidate]
) -> Iterator[tuple[int, str]]:
    """Versions and paths of blocks of a timeline, among them all candidates.

    Blocks are only counted in a turn that is new, until another turn begins; so their numbers follow from this stretch
    of the log alone.
    """
    new = [*index.new_turns(timeline, candidates[-1].version)]
    for candidate in candidates:
        yield candidate.version, path_at(candidate.block, candidate.version)
    stretches = [
        (first - 1, found[-1].version, {path_stem(candidate.block) for candidate in found})
        for first, found in _stretches(new, candidates)
    ]
    turns = (index.turns(timeline, last, after=after) for after, last, _ in stretches)
    related = (
        index.related(timeline, stems, after=after, last=last) for after, last, stems in stretches
    )
    changes = merge(new, chain.from_iterable(turns), key=attrgetter("version"))
    yield from _named(changes, chain.from_iterable(related))


def _stretches(
    new: Sequence[TurnChange], candidates: Sequence[Candidate]
) -> Sequence[tuple[int, Sequence[Candidate]]]:
    """The stretches of a log in which candidates may be counted: the version of the first block, and the candidates."""
    begun = [turn for place, turn in enumerate(new) if not turn.is_result or place == 0]
    first = [turn.version for turn in begun]
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        turn = begun[bisect_right(first, candidate.version) - 1] if begun else None
        if turn and turn.turn == candidate.block.turn:
            found.setdefault(turn.version, []).append(candidate)
    if len(found) > STRETCHES_MAX or not all(turn.turn for turn in new) or not new:
        return [(1, candidates)]
    return [*found.items()]


def _named(turns: Iterable[TurnChange], related: Iterable[Recorded]) -> Iterator[tuple[int, str]]:
    """Versions and paths of blocks, given the changes of turn and all events with the same stems in these stretches."""
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
