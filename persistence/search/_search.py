"""Full-text search over the blocks of a store, including those that a prompt no longer shows.

There are two passes. The first scores every candidate and keeps the best; the second computes their logical
paths, for which it has to count the earlier blocks of the turn with the same stem.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from heapq import heappush, heappushpop, merge
from itertools import accumulate, chain, islice
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

import attrs

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    DocumentPart,
    MisuseError,
    Naming,
    Part,
    Recorded,
    TextPart,
    TimelineId,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    clean_json,
    path_at,
    path_of,
    path_stem,
    tag_of,
    text_of,
    version_in,
)
from persistence._store import BlockIndex, EventStore, TurnChange
from persistence.search._index import candidates_in, index_of, names_left

LIMIT_MAX: Final = 1_000

STRETCHES_MAX: Final = 32
"""With more stretches than this, the log is read from the beginning instead."""

_Place: TypeAlias = tuple[TimelineId, int]


@attrs.frozen
class BlockMatch:
    """A block that matches a query, and its place."""

    timeline: TimelineId
    version: int
    at: float
    block: Block
    score: float


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
    timeline: TimelineId | None,
    limit: int,
    *,
    hidden: bool,
) -> Sequence[Hit]:
    """See `EventStore.search`."""
    if not 1 <= limit <= LIMIT_MAX:
        raise MisuseError(f"limit={limit}: give a number from 1 to {LIMIT_MAX:,}")
    parsed = Query.read(query)

    @cache
    def withheld(name: TimelineId) -> Collection[BlockId]:
        return store.load_window(name).withheld

    def is_hidden(match: BlockMatch) -> bool:
        return not hidden and match.block.id in withheld(match.timeline)

    best = _best(_matches(store, parsed, timeline), limit, is_hidden)
    paths = _paths(store, best)
    return [_hit(parsed, match, paths) for match in best]


def _matches(
    store: EventStore, query: "Query", timeline: TimelineId | None
) -> Iterator[BlockMatch]:
    words = {word for needle in query.wanted for word in needle.words}
    for name, (version, event) in candidates_in(store, words, query.types, timeline):
        if not isinstance(event, BlockAppended) or not query.accepts(event.block):
            continue
        folded = searched_text(event.block).casefold()
        if query.matches(folded):
            yield BlockMatch(name, version, event.at, event.block, score(query, folded))


def _best(
    matches: Iterable[BlockMatch], limit: int, is_hidden: Callable[[BlockMatch], bool]
) -> list[BlockMatch]:
    """The best matches that are not hidden, best first; only those are asked about that would be among the best."""
    best: list[tuple[tuple[float, float, int, str], int, BlockMatch]] = []
    for number, match in enumerate(matches):
        rank = match.score, match.at, match.version, match.timeline
        if (len(best) == limit and rank <= best[0][0]) or is_hidden(match):
            continue
        (heappushpop if len(best) == limit else heappush)(best, (rank, -number, match))
    return [match for _, _, match in sorted(best, reverse=True)]


def _paths(store: EventStore, best: Sequence[BlockMatch]) -> dict[_Place, str]:
    """The paths of matches, as `Timeline.read` accepts them, by timeline and version."""
    by_timeline: dict[TimelineId, list[BlockMatch]] = {}
    for match in sorted(best, key=lambda each: each.version):
        by_timeline.setdefault(match.timeline, []).append(match)
    paths: dict[_Place, str] = {}
    for timeline, own in by_timeline.items():
        versions = {match.version for match in own}
        names = _counted(index_of(store, timeline), timeline, own)
        if forgotten := store.at_hand(timeline)[0].forgotten:
            names = ((v, path) for v, _, path in names_left(store, timeline, forgotten))
        paths |= {(timeline, version): path for version, path in names if version in versions}
    return paths


def _counted(
    index: BlockIndex, timeline: TimelineId, matches: Sequence[BlockMatch]
) -> Iterator[tuple[int, str]]:
    """Versions and paths of blocks of a timeline, among them all matches.

    Blocks are only counted in a turn that is new, until another turn begins; so their numbers follow from this stretch
    of the log alone.
    """
    new = [*index.new_turns(timeline, matches[-1].version)]
    for match in matches:
        yield match.version, path_at(match.block, match.version)
    stretches = [
        (first - 1, group[-1].version, {path_stem(match.block) for match in group})
        for first, group in _stretches(new, matches)
    ]
    turns = (index.turns(timeline, last, after=after) for after, last, _ in stretches)
    related = (
        index.related(timeline, stems, after=after, last=last) for after, last, stems in stretches
    )
    changes = merge(new, chain.from_iterable(turns), key=attrgetter("version"))
    yield from _count(changes, chain.from_iterable(related))


def _stretches(
    new: Sequence[TurnChange], matches: Sequence[BlockMatch]
) -> Sequence[tuple[int, Sequence[BlockMatch]]]:
    """The stretches of a log in which matches may be counted: the version of the first block, and the matches."""
    turns = [turn for place, turn in enumerate(new) if not turn.is_result or place == 0]
    first = [turn.version for turn in turns]
    groups: dict[int, list[BlockMatch]] = {}
    for match in matches:
        turn = turns[bisect_right(first, match.version) - 1] if turns else None
        if turn and turn.turn == match.block.turn:
            groups.setdefault(turn.version, []).append(match)
    if len(groups) > STRETCHES_MAX or not all(turn.turn for turn in new) or not new:
        return [(1, matches)]
    return [*groups.items()]


def _count(turns: Iterable[TurnChange], related: Iterable[Recorded]) -> Iterator[tuple[int, str]]:
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


def _hit(query: "Query", match: BlockMatch, paths: dict[_Place, str]) -> Hit:
    text, matches = snippet(query, searched_text(match.block))
    return Hit(
        timeline=match.timeline,
        version=match.version,
        block=match.block.id,
        path=paths[match.timeline, match.version],
        type=tag_of(match.block),
        at=match.at,
        score=match.score,
        snippet=text,
        matches=matches,
    )


# A search query: words and phrases, and the kinds and turns of blocks.
#
# disk full                  both words, in any order, also inside longer words; case is ignored
# "no space left"            these words in this order, whatever white space is between them
# -warning -"out of memory"  not these
# type:react.tool.result     only blocks of this kind; of several kinds any of them
# turn:t3                    only blocks of this turn; -type: and -turn: exclude


QUERY_CHARACTERS_MAX: Final = 4_000
_TOKEN: Final = re.compile(
    r'(?P<no>-?)(?P<field>type:|turn:)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+))'
)


@attrs.frozen
class Needle:
    """One or more words that must occur in this order."""

    words: tuple[str, ...]
    """The words, case-folded."""

    @cached_property
    def _phrase(self) -> re.Pattern[str]:
        return re.compile(r"\s+".join(map(re.escape, self.words)))

    def is_in(self, folded: str) -> bool:
        """Whether the words occur in a case-folded text."""
        if any(word not in folded for word in self.words):
            return False
        return len(self.words) == 1 or self._phrase.search(folded) is not None

    def spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Start and end of each occurrence, in order."""
        return (match.span() for match in self._phrase.finditer(folded))


@attrs.frozen(kw_only=True)
class Query:
    """A parsed query."""

    wanted: tuple[Needle, ...] = ()
    unwanted: tuple[Needle, ...] = ()
    types: frozenset[str] = frozenset()
    types_not: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    turns_not: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str) -> "Query":
        """Parse a query.

        Raises:
            MisuseError: it has no search term, or is too long.
        """
        if len(text) > QUERY_CHARACTERS_MAX:
            raise MisuseError(f"a query has at most {QUERY_CHARACTERS_MAX:,} characters")
        terms: dict[str, list[str]] = {}
        for match in _TOKEN.finditer(str(clean_json(text))):
            value = match["word"] if match["phrase"] is None else match["phrase"]
            terms.setdefault(match["no"] + (match["field"] or ""), []).append(value)
        query = cls(
            wanted=_needles(terms.get("", ())),
            unwanted=_needles(terms.get("-", ())),
            types=frozenset(terms.get("type:", ())),
            types_not=frozenset(terms.get("-type:", ())),
            turns=frozenset(terms.get("turn:", ())),
            turns_not=frozenset(terms.get("-turn:", ())),
        )
        if not (query.wanted or query.types or query.turns):
            raise MisuseError('nothing to search for: give a word, a "phrase", type: or turn:')
        return query

    def accepts(self, block: Block) -> bool:
        """Whether the query admits the block's kind and turn."""
        tag, turn = tag_of(block), block.turn
        return (
            (not self.types or tag in self.types)
            and (not self.turns or turn in self.turns)
            and tag not in self.types_not
            and turn not in self.turns_not
        )

    def matches(self, folded: str) -> bool:
        """Whether a case-folded text contains all wanted needles and no unwanted one."""
        return all(needle.is_in(folded) for needle in self.wanted) and not any(
            needle.is_in(folded) for needle in self.unwanted
        )


def _needles(texts: Iterable[str]) -> tuple[Needle, ...]:
    needles = (Needle(tuple(text.casefold().split())) for text in texts)
    return tuple(dict.fromkeys(needle for needle in needles if needle.words))


def searched_text(block: Block) -> str:
    """The text that is searched: all texts of a block, without placeholders for images."""
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            return "\n".join((block.text, *_texts(block.parts)))
        case ToolResult():
            return "\n".join(_texts(block.parts))
        case UserAttachment():
            return "\n".join((block.name, *_texts((block.part,))))
        case _:
            return text_of(block)


def _texts(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, DocumentPart):
            yield part.name


# How well a block answers a query, and the piece of it that shows why.
#
# BM25 with a fixed pivot for the length and no weight for rarity: every hit has every word, and a
# score that depends on nothing but the block is the same in every store and at any later time.


SATURATION: Final = 1.2
LENGTH_SHARE: Final = 0.75
LENGTH_PIVOT: Final = 1_000
"""The usual length of a block, in characters."""
COUNTED_MAX: Final = 32
"""The largest number of occurrences of a needle that are counted; more hardly change a score."""
INSIDE: Final = 0.5
"""The weight of an occurrence inside a longer word; others have 1."""

SNIPPET_CHARACTERS: Final = 240
_LEAD: Final = 60
"""How many characters of its line a snippet shows before the first match, at most."""
_SPANS_MAX: Final = 200

Span: TypeAlias = tuple[int, int]


def score(query: Query, folded: str) -> float:
    """How well a matching, case-folded text answers the query; 0 if the query has no words."""
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(folded) / LENGTH_PIVOT
    total = 0.0
    for needle in query.wanted:
        spans = islice(needle.spans(folded), COUNTED_MAX)
        weight = sum(1.0 if _is_whole(folded, span) else INSIDE for span in spans)
        total += weight * (SATURATION + 1) / (weight + SATURATION * length)
    return total


def _is_whole(folded: str, span: Span) -> bool:
    """Whether the span is a whole word: no letter or digit is next to it."""
    start, end = span
    before, after = folded[start - 1 : start], folded[end : end + 1]
    return not (before.isalnum() and folded[start].isalnum()) and not (
        after.isalnum() and folded[end - 1].isalnum()
    )


def snippet(query: Query, text: str) -> tuple[str, tuple[Span, ...]]:
    """The piece of a text with most of the query's needles close together, and the matches in it."""
    folded = text.casefold()
    spans = sorted(
        (*span, index)
        for index, needle in enumerate(query.wanted)
        for span in islice(needle.spans(folded), _SPANS_MAX)
    )
    first, last = _closest(spans)
    # Where each letter begins in the folded text: folding turns some into several.
    starts: Sequence[int] = range(len(text) + 1)
    if len(text) != len(folded):  # else each letter folds to one: none folds to nothing
        starts = [0, *accumulate(len(letter.casefold()) for letter in text)]
    begin = bisect_right(starts, first) - 1
    line = text.rfind("\n", 0, begin) + 1
    start = _word_start(text, line, begin)
    line_end = text.find("\n", bisect_left(starts, last))
    end = min(start + SNIPPET_CHARACTERS, len(text) if line_end < 0 else line_end)
    if not spans and not text[start:end].strip():
        start, end = _first_words(text)
    places = ((bisect_right(starts, a) - 1, bisect_left(starts, b)) for a, b, _ in spans)
    inside = ((max(a - start, 0), min(b, end) - start) for a, b in places)
    return text[start:end], _merged(sorted(span for span in inside if span[0] < span[1]))


def _word_start(text: str, line: int, begin: int) -> int:
    """Where the snippet begins: at a word, at most `_LEAD` characters before the first match."""
    start = max(line, begin - _LEAD)
    if start > line:
        start = text.find(" ", start, begin) + 1 or start
    while start < begin and text[start].isspace():
        start += 1
    return start


def _first_words(text: str) -> Span:
    start = len(text) - len(text.lstrip())
    line_end = text.find("\n", start)
    return start, min(start + SNIPPET_CHARACTERS, len(text) if line_end < 0 else line_end)


def _closest(spans: Sequence[tuple[int, int, int]]) -> Span:
    """Start and end of the first stretch with the most different needles that fits into a snippet; `spans` are start, end
    and index of the needle, in the order of the text."""
    best, most = (0, 0), 0
    for index, (start, end, _) in enumerate(spans):
        ends: dict[int, int] = {}
        for _, other_end, needle in spans[index:]:
            if other_end - start > SNIPPET_CHARACTERS - _LEAD:
                break
            ends.setdefault(needle, other_end)
        if max(len(ends), 1) > most:
            best, most = (start, max(ends.values(), default=end)), max(len(ends), 1)
    return best


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Merge overlapping spans."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
