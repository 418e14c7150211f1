"""The index with excerpts: what was folded, findable by name.

Its entries are bought with one budget of tokens. On offer are pieces of folded texts (lines, and short
texts as a whole: see `_reading`) and bare names. The best worth per size is bought first.

    a name      is worth more the more often the agent wrote it, and the newer it is
    a piece     has the worth of the names that were last mentioned in it, a part of the worth of the
                neighbouring pieces, and some of its own if it is code that the agent wrote
    bare name   has most of the worth of the name; its cost is returned when a piece with it is bought

Lines of a file that a later read, edit or write replaced are worth nothing (see `_files`).

The index needs no model. At the next compaction its excerpts compete with the newly folded texts, so the
cost follows what is new. Between compactions the index does not change, so it stays in the cached prefix.

A compaction keeps the existing layers of the index and adds one. While the provider's cache is warm, reading the
existing layers from it costs a tenth of the normal price; rewriting them would cost about twelve times as much. So a
compaction adds a layer about what is new:

    [ layer 1                 ]
    [ layer 1                 ][ layer 2 ]
    [ layer 1                 ][ layer 2 ][ layer 3 ]
    [ layer 1, the best of all that         ]          full, or the cache is cold: rewritten

A layer that stays has the same bytes in the next request.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, starmap
from operator import attrgetter, is_, itemgetter
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec
from msgspec import structs

from blocks import AssistantCompletion, Excerpt, Index, Layer, Term, ToolCall, is_sealed, label_of
from render.summary._files import follow, line_at
from render.summary._identifiers import searched, texts_of
from render.summary._reading import (
    SURROUNDINGS_MIN,
    Reader,
    Source,
    is_surrounded,
    names_in_context,
)
from render.summary._text import file_heading, layer_text, layers_of
from render.view._group import Entry

# Layers.


LAYER_MIN: Final = 0.5
"""A layer is added only if this share of its budget is still free."""
SPARE_SHARE: Final = 0.2
SPARE_TOKENS: Final = 400
"""If this much room remains beyond a layer's budget, the layer certainly fits and is not counted as a
whole: its pieces were counted, and its frame is small."""
TERMS_MIN: Final = 2000
TERM_TOKENS: Final = 15
TERMS_MAX: Final = 3000
"""An index ranks and remembers one name for each `TERM_TOKENS` of all layers together, within these bounds."""
TERM_TOKENS_MIN: Final = 4
"""But no more than one name for each of so many tokens: what is remembered in a small window is small, too."""
TERM_CHARACTERS: Final = 40
"""The names that are remembered have at most so many characters on average; the best ones are remembered."""
LAYERS_MAX: Final = 6
"""The most layers; with many short layers, their frames cost more than rewriting the index."""


@attrs.frozen(kw_only=True)
class IndexRoom:
    """The token limits of an index."""

    total: int
    """All layers together."""
    layer: int
    """A layer that is added; 0: no layers are added."""
    rebuilt: int
    """The single layer of a rewritten index."""
    is_cold: bool
    """Whether the provider's cache is cold, so that keeping layers saves nothing."""


def extend_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    room: IndexRoom,
    reader: Reader,
) -> Index:
    """The index after `folded` (and hidden) entries are added to what `previous` covers.

    A term has no worth if the `visible` texts show it in context.
    """
    layers, count = layers_of(previous), reader.count
    left = room.total - reader.layers_cost(layers)
    is_full = left < LAYER_MIN * room.layer or len(layers) >= LAYERS_MAX
    if room.is_cold or not room.layer or is_full:
        layers, left = (), room.total
    named = {term.term for layer in layers for term in layer.names}
    known = _known(previous, layers, named)
    tokens = min(room.layer if layers else room.rebuilt, left)
    terms = min(max(room.total // TERM_TOKENS, TERMS_MIN), TERMS_MAX, room.total // TERM_TOKENS_MIN)
    budget = IndexBudget(tokens=tokens, terms=terms)
    built = build_index(known, folded, visible, budget, reader)
    names = tuple(term for term in built.terms if term.bare and term.term not in named)
    layer = Layer(excerpts=built.excerpts, names=names)
    if left - tokens < max(SPARE_SHARE * left, SPARE_TOKENS):
        layer = _fitted(layer, left, count)
    aside = (term for term in previous.terms if term.term in named)
    used = _used(built.terms, aside)
    sizes = accumulate(len(term.term) for term in used)
    count_max = sum(size <= terms * TERM_CHARACTERS for size in sizes)
    return Index(layers=(*built.layers, layer), terms=used[:count_max])


def _known(previous: Index, kept: Sequence[Layer], named: Collection[str]) -> Index:
    """The index that the next layer starts from: everything shown so far, except in layers that stay."""
    if kept:
        others = tuple(term for term in previous.terms if term.term not in named)
        return Index(layers=tuple(kept), terms=others)
    layers = layers_of(previous)
    excerpts = (excerpt for layer in layers for excerpt in layer.excerpts)
    in_log_order = sorted(excerpts, key=lambda excerpt: (excerpt.seen, excerpt.path))
    names = (term for layer in layers for term in layer.names)
    return Index(excerpts=tuple(in_log_order), terms=(*names, *previous.terms))


def _fitted(layer: Layer, tokens: int, count: Callable[[str], int]) -> Layer:
    """The layer without its last names, and then its oldest excerpts, until it fits."""
    while (layer.names or layer.excerpts) and count(layer_text(layer)) > tokens:
        if layer.names:
            layer = msgspec.structs.replace(layer, names=layer.names[: -1 - len(layer.names) // 8])
        else:
            rest = layer.excerpts[1 + len(layer.excerpts) // 8 :]
            layer = msgspec.structs.replace(layer, excerpts=rest)
    return layer


def _used(terms: Iterable[Term], aside: Iterable[Term]) -> tuple[Term, ...]:
    """The names that the agent used; the uses in `aside`, which were counted separately, are added."""
    known = {term.term: term for term in aside}
    known |= {
        term.term: msgspec.structs.replace(term, uses=term.uses + known[term.term].uses)
        if term.term in known
        else term
        for term in terms
    }
    used = [term for term in known.values() if term.uses]
    return tuple([msgspec.structs.replace(t, bare=False) if t.bare else t for t in used])


# What a layer holds.


VISIBLE_MAX: Final = 4_000_000
"""Characters of all visible texts together that are searched for names; beyond it, only the beginning and
end of each text."""


def build_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    budget: "IndexBudget",
    reader: Reader,
) -> Index:
    """The index after `folded` (and hidden) entries are added to what `previous` covers.

    A term has no worth if the `visible` texts, or the layers of `previous` that stay, show it in context.
    """
    known = Known(
        {term.term: term.uses for term in previous.terms},
        {term.term: term.seen for term in previous.terms},
    )
    again = {entry.path for entry in folded}  # hidden at the last compaction, folded at this one
    earlier = [_source(e, e.path, reader) for e in previous.excerpts if e.path not in again]
    frozen = [[_source(e, "", reader) for e in layer.excerpts] for layer in previous.layers]
    read = [(entry, list(_sources(entry, reader))) for entry in folded]
    follow(sorted([*chain(*frozen), *earlier], key=attrgetter("seen")), read)
    sources = [*earlier, *(source for _, each in read for source in each)]
    noted = _read_all(sources, known, budget.terms)
    ranked = _ranked(known, budget.terms)
    # Terms that the model sees in context need no excerpt.
    shown = [Source("", 0, text, reading=reader.read(text)) for text in _in_sight(visible)]
    in_sight = [*shown, *chain(*frozen)]
    market = Market(
        sources=sources,
        noted=noted,
        in_sight=in_sight,
        ranked=ranked,
        known=known,
        reader=reader,
        lines=set(chain.from_iterable(map(Source.holding, in_sight))),
    )
    market.buy(budget)
    terms = _terms(ranked, known, market.bare)
    layers = tuple(starmap(_aged, zip(previous.layers, frozen, strict=True)))
    return Index(excerpts=tuple(_excerpts(sources)), terms=tuple(terms), layers=layers)


def _in_sight(visible: Iterable[str]) -> Iterable[str]:
    """The visible texts to search; beyond `VISIBLE_MAX`, only the beginning and end of each."""
    left = VISIBLE_MAX
    for text in visible:
        pieces = (text,) if len(text) <= left else searched(text)
        left -= sum(map(len, pieces))
        yield from pieces


def _ranked(known: "Known", terms_max: int) -> Sequence[str]:
    """The best names: those that the agent used most, the newest first among equals."""
    alike: list[list[str]] = [[] for _ in range(USES_MAX + 1)]
    for term, uses in known.uses.items():
        alike[min(uses, USES_MAX)].append(term)
    ranked = list[str]()
    for terms in reversed(alike):
        terms.sort()
        terms.sort(key=known.seen.__getitem__, reverse=True)
        ranked += terms
        if len(ranked) >= terms_max:
            break
    return ranked[:terms_max]


def _source(excerpt: Excerpt, path: str, reader: Reader) -> Source:
    text, reading = excerpt.text, reader.read(excerpt.text)
    source = Source(path, excerpt.seen, text, is_call=excerpt.own, reading=reading)
    source.file, source.line, source.is_changed = excerpt.file, excerpt.line, excerpt.changed
    if excerpt.stale:
        starts = source.line_starts()
        for number in excerpt.stale:
            if 0 <= number < len(starts):
                source.give_up(starts[number])
    return source


def _aged(layer: Layer, sources: Iterable[Source]) -> Layer:
    """The layer, with its stale lines marked."""
    excerpts = tuple(
        excerpt
        if (stale := source.stale_lines()) == excerpt.stale
        else structs.replace(excerpt, stale=stale)
        for excerpt, source in zip(layer.excerpts, sources, strict=True)
    )
    is_same = all(map(is_, excerpts, layer.excerpts))
    return layer if is_same else structs.replace(layer, excerpts=excerpts)


def _sources(entry: Entry, reader: Reader) -> Iterable[Source]:
    if entry.original is not None or is_sealed(entry.block):  # its placeholder has no names
        return
    block = entry.block
    own, is_call = isinstance(block, ToolCall | AssistantCompletion), isinstance(block, ToolCall)
    superseded = frozenset(_superseded(block.input) if isinstance(block, ToolCall) else ())
    for text in texts_of(block):
        reading = reader.read(text)
        yield Source(entry.path, entry.version, text, own, is_call, superseded, reading=reading)


def _superseded(value: Any) -> Iterator[str]:
    """The lines that an edit replaces: those of its `old...` arguments."""
    stack = [value]
    while stack:  # as in `leaves`
        item = stack.pop()
        if isinstance(item, dict):
            for name, inner in cast("dict[Any, Any]", item).items():
                if isinstance(inner, str) and str(name).lower().startswith("old"):
                    yield from map(str.strip, inner.split("\n"))
                else:
                    stack.append(inner)
        elif isinstance(item, list | tuple):
            stack += cast("list[Any]", item)


def _read_all(sources: Sequence[Source], known: "Known", terms_max: int) -> Sequence[set[str]]:
    """The identifiers of each text that can rank among the best; `known` is updated with them.

    Names that the agent wrote are read first, then all texts from the newest on. Once the newer texts gave
    enough names, an older text is only searched for known names.
    """
    written = Counter(chain.from_iterable(source.names for source in sources if source.own))
    for term, uses in written.items():
        known.uses[term] = known.uses.get(term, 0) + uses
    noted = [source.names for source in sources]
    new = set[str]().union(*noted).difference(known.uses)
    if len(new) < terms_max:
        known.uses.update(dict.fromkeys(new, 0))
    else:
        noted = list(_noted(sources, known, terms_max))
        noted.reverse()
    newest = known.seen
    for source, names in zip(sources, noted, strict=True):
        seen = source.seen
        for term in names:
            if newest.get(term, -1) < seen:
                newest[term] = seen
    return noted


def _noted(sources: Sequence[Source], known: "Known", terms_max: int) -> Iterator[set[str]]:
    """The identifiers of each text that count, newest text first; new names are added to `known`."""
    new, oldest, enough = 0, max((source.seen for source in sources), default=0), -1
    for source in reversed(sources):
        if source.seen < enough:
            yield source.names & known.uses.keys()
        else:
            new += known.add(source.names)
            yield source.names
        oldest = min(oldest, source.seen)
        if new >= terms_max:
            enough = max(enough, oldest)


def _excerpts(sources: Sequence[Source]) -> Iterable[Excerpt]:
    chosen = [source for source in sources if source.chosen]
    for source in sorted(chosen, key=lambda source: (source.seen, source.path)):
        for start, end in source.excerpts():
            text = source.text[start:end].strip()
            yield Excerpt(
                path=source.path,
                seen=source.seen,
                text=text,
                own=source.is_call,
                file=source.file,
                line=line_at(source, start),
                changed=source.is_changed,
            )


def _terms(ranked: Sequence[str], known: "Known", bare: Iterable[str]) -> Iterable[Term]:
    """The terms that the next compaction needs: bare names, and names that the agent used."""
    listed = set(bare)
    for term in ranked:
        is_bare, uses = term in listed, known.uses[term]
        if is_bare or uses:
            yield Term(term=term, seen=known.seen[term], uses=uses, bare=is_bare)


# Choosing the content of an index: offers are bought in order of worth per size until the tokens are spent.
#
# Names have a worth; it is spread over the pieces that mention them, and each piece and each bare name is an offer.


UNIT: Final = 1_000_000
"""The worth of one use of a name. Worths are whole numbers, so sums of them do not depend on their order."""
USES_MAX: Final = 4
"""Uses of a name above this number do not raise its worth."""
REPEATED: Final = 0.5
"""Added to the worth of a name that occurs in several texts."""
UNUSED: Final = 0.35
"""The worth of a name that the agent has not written."""
OWN: Final = 1.5
"""The own worth of a new line that the agent has written."""
OWN_CHARACTERS: Final = 60
"""A short text of the agent counts as one line for each this many characters."""
OWN_MIN: Final = 20
"""Characters that a line must have to get a worth of its own."""
BARE: Final = 0.7
"""Factor on a name's worth when it is only listed, without context."""
HALF_AGE: Final = 400
"""Age in versions at which worth is halved."""
SIZE_POWER: Final = 0.8
"""Worth is divided by tokens to this power, so long pieces are favoured a little."""
CHARACTERS_PER_TOKEN: Final = 3.6
"""Estimate for ranking; what is bought is counted exactly."""
LEFT_MIN: Final = 8
"""With fewer tokens left, hardly anything can be bought, so buying ends."""
SIZES_KNOWN: Final = 512
"""Number of cached results of `_size`; nearly all pieces are shorter than this many characters."""
LABEL_TOKENS: Final = 2
"""Tokens of the brackets and the line end of a label."""


@attrs.frozen(kw_only=True)
class IndexBudget:
    """What an index may hold."""

    tokens: int
    terms: int = 2000
    """The most names that are ranked and remembered."""
    is_naming: bool = True
    """Whether bare names may be bought."""


@attrs.frozen(eq=False)
class Known:
    """What is known of identifiers while the index is built."""

    uses: dict[str, int]
    """How often the agent has written each name; 0 if never."""
    seen: dict[str, int]
    """The newest version at which each name occurs."""

    def add(self, names: set[str]) -> int:
        """Add names; returns how many of them are new."""
        uses, before = self.uses, len(self.uses)
        for term in names:
            if term not in uses:
                uses[term] = 0
        return len(uses) - before


_Offer: TypeAlias = tuple[float, Source | None, int]
"""A piece, or a name, on offer: its worth per size; the source of a piece, None for a name; the number of the piece in its
source, or the rank of the name."""


@attrs.define(kw_only=True, eq=False)
class Market:
    """The offers for an index, and what has been bought."""

    sources: Sequence[Source]
    noted: Sequence[set[str]]
    """The names that count, for each source."""
    in_sight: Sequence[Source]
    """Texts that the model sees in any case."""
    ranked: Sequence[str]
    known: Known
    reader: Reader
    lines: set[str]
    """Stripped lines that are visible or already bought."""
    bare: dict[str, int] = attrs.field(factory=dict[str, int])
    """Listed names with their cost."""
    _shown: set[str] = attrs.field(factory=set[str])
    """Names that occur in bought pieces."""
    _labels: set[int] = attrs.field(factory=set[int])
    """Versions of blocks with a bought piece; pieces of one block share a label."""
    _files: set[str] = attrs.field(factory=set[str])
    """Files with a bought piece; pieces of one file share a heading."""

    def buy(self, budget: IndexBudget) -> None:
        """Buy the best offers until the budget is spent."""
        names = set(self.ranked)
        worths = self._worths(names - surrounded(self.in_sight, names))
        spread(self.sources, self.noted, worths)
        self._value_own_lines()
        offers = [*self._names_on_offer(worths)] if budget.is_naming else []
        offers += self._pieces_on_offer()
        left = budget.tokens
        for _, source, number in sorted(offers, key=itemgetter(0), reverse=True):
            if left < LEFT_MIN:
                break
            if source is not None:
                if (source.pieces.costs[number] or 0) <= left:
                    left -= self._cut(source, number, left)
            elif self.ranked[number] not in self._shown:
                left -= self._list(self.ranked[number], left)

    def _worths(self, names: set[str]) -> dict[str, int]:
        """The worth of each name."""
        newest, uses, seen = self._newest(), self.known.uses, self.known.seen
        again = repeated(chain(self.noted, (source.names for source in self.in_sight)))
        worths = dict[str, int]()
        for term in names:
            worth = UNUSED + min(uses[term], USES_MAX) + (REPEATED if term in again else 0)
            worths[term] = int(worth * _decay(newest - seen[term]))
        return worths

    def _names_on_offer(self, worths: Mapping[str, int]) -> Iterator[_Offer]:
        """The names that occur in no visible text."""
        absent = worths.keys() - set[str]().union(*(source.names for source in self.in_sight))
        for rank, term in enumerate(self.ranked):
            if term in absent:
                yield BARE * worths[term] / _size(len(term)), None, rank

    def _newest(self) -> int:
        return max((source.seen for source in self.sources), default=0)

    def _value_own_lines(self) -> None:
        """Add worth to the lines that the agent passed to tools."""
        newest = self._newest()
        for source in self.sources:
            if not source.is_call:
                continue
            worth = OWN * _decay(newest - source.seen)
            if source.is_whole:
                source.add(0, int(worth * max(1.0, len(source.text) / OWN_CHARACTERS)))
                continue
            for number in range(len(source.pieces.starts)):
                piece = source.piece(number)
                if len(piece) >= OWN_MIN and piece.strip() not in source.superseded:
                    source.add(number, int(worth))

    def _pieces_on_offer(self) -> Iterator[_Offer]:
        """All pieces of any worth, those of the newest sources first."""
        for source in sorted(self.sources, key=attrgetter("seen"), reverse=True):
            starts, ends = source.pieces.starts, source.pieces.ends
            for number, worth in sorted(source.worth.items()):
                yield worth / _size(ends[number] - starts[number]), source, number

    def _list(self, term: str, left: int) -> int:
        """List a bare name; returns its cost, 0 if it is too expensive."""
        if (cost := self.reader.count(term) + 1) > left:
            return 0
        self.bare[term] = cost
        return cost

    def _cut(self, source: Source, number: int, left: int) -> int:
        """Buy a piece; returns its cost, less the cost of bare names that it now shows."""
        text = source.piece(number)
        line = text.strip()
        if not line or line in self.lines or _is_beyond(line, left):
            return 0
        is_new = bool(source.file) and source.file not in self._files
        room = left - self._heading(source, is_new=is_new)
        if _is_beyond(line, room):
            return 0
        cost = self.reader.cost(source, number)
        if cost > room:
            return 0
        source.chosen.add(number)
        self._files.add(source.file)
        self._labels.add(source.seen)
        self.lines.add(line)
        names = source.names if source.is_whole else self.reader.names(text)
        if is_new:
            names = names | self.reader.names(source.file)
        self._shown |= names
        bare = self.bare
        given_back = sum(map(bare.pop, names & bare.keys()))
        return left - room + cost - given_back

    def _heading(self, source: Source, *, is_new: bool) -> int:
        """Tokens of a piece's file heading and label; 0 for those that an earlier piece has paid."""
        heading = self.reader.count(f"{file_heading(source.file)}\n") if is_new else 0
        if source.seen in self._labels:
            return heading
        return heading + self.reader.count(label_of(source.seen)) + LABEL_TOKENS


def _is_beyond(line: str, tokens: int) -> bool:
    """Whether a line has more words than `tokens`. A word is at least one token, so such a line cannot be
    paid for and need not be counted."""
    return len(line) > tokens and len(line.split(maxsplit=max(tokens, 0))) > tokens


@lru_cache(maxsize=SIZES_KNOWN)
def _size(characters: int) -> float:
    """The estimated tokens of a text of this length, to the power `SIZE_POWER`."""
    return float((characters / CHARACTERS_PER_TOKEN + 1) ** SIZE_POWER)


def _decay(age: int) -> float:
    """The worth, at this age, of what was worth `UNIT` when it was new."""
    return UNIT / (1 + age / HALF_AGE)


# Mentions: where texts mention names, and the worth that this adds to the pieces.


EARLIER: Final = 5
"""The mention of a name in the second newest text adds one part in this many of the name's worth."""
NEIGHBOUR: Final = 3, 10
"""Share of a name's worth that goes to the pieces directly before and after a mention: 3 of 10 parts."""


def spread(sources: Sequence[Source], noted: Sequence[set[str]], worths: Mapping[str, int]) -> None:
    """Add the worth of each name to the pieces that mention it in context.

    Only the two newest texts that mention a name count, and in each only the last mention: the newest text
    adds the full worth, the one before it a part (`EARLIER`). `noted` has, for each text, the names that
    count there. Worths are whole numbers, so sums do not depend on the order of a set.
    """
    last, before = set(worths), set[str]()
    for source, names in zip(reversed(sources), reversed(noted), strict=True):
        firsts, seconds = names & last, names & before
        if source.is_whole and not source.stale:
            shown = names_in_context(source.reading)
            firsts &= shown
            seconds &= shown
            if firsts or seconds:
                worth = sum(map(worths.__getitem__, firsts))
                source.add(0, worth + sum(map(worths.__getitem__, seconds)) // EARLIER)
        else:
            firsts = {term for term in firsts if _value(source, term, worths[term])}
            seconds = {term for term in seconds if _value(source, term, worths[term] // EARLIER)}
        last -= firsts
        before |= firsts
        before -= seconds


def repeated(texts: Iterable[set[str]]) -> set[str]:
    """The names that occur in more than one text."""
    once, again = set[str](), set[str]()
    for names in texts:
        again |= once & names
        once |= names
    return again


def surrounded(sources: Iterable[Source], names: set[str]) -> set[str]:
    """The names that occur in context in at least one of the texts."""
    found = set[str]()
    for source in sources:
        if source.is_whole and not source.stale:
            found |= names & names_in_context(source.reading)
        else:
            new = (names & source.names) - found
            found.update(term for term in new if _mentioned(source, term) >= 0)
    return found


def _mentioned(source: Source, term: str) -> int:
    """Position of the last mention of a term outside stale lines; -1 if there is none, or too little text around
    it. The text must contain the term."""
    text, least = source.text, len(term) + SURROUNDINGS_MIN
    position = text.rfind(term)
    if source.stale:
        position = _holding(source, term, position)
    if position < 0:
        return -1
    if not source.is_whole:
        number = source.piece_at(position)
        if source.pieces.ends[number] - source.pieces.starts[number] >= least:
            return position
    return position if is_surrounded(text, position, least) else -1


def _holding(source: Source, term: str, position: int) -> int:
    """Position of the last occurrence outside stale lines, -1 if there is none. An occurrence inside a longer
    name counts. `position` is the last occurrence in the whole text."""
    while position >= 0 and source.is_stale(source.piece_at(position)):
        position = source.text.rfind(term, 0, position)
    return position


def _value(source: Source, term: str, worth: int) -> bool:
    """Add the worth to the pieces that contain the mention, and a share of it to the pieces before and after.

    Returns whether there is a mention in context.
    """
    position = _mentioned(source, term)
    if position < 0:
        return False
    first, end = source.piece_at(position), position + len(term)
    source.add(first, worth)
    last, ends = first, source.pieces.ends
    most = len(ends) - 1
    while last < most and end > ends[last]:
        last += 1
        source.add(last, worth)
    share, of = NEIGHBOUR
    if first > 0:
        source.add(first - 1, share * worth // of)
    if last < most:
        source.add(last + 1, share * worth // of)
    return True
