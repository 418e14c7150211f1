"""Reading texts for an index: each text is read only once, for its names, its pieces, and the tokens of the pieces that
were offered.

A text is divided into pieces that the index selects one by one: its lines, or a short text as a whole.

    text     a line ⏎ another ⏎ a very long line that goes on and on ... to its end ⏎ the last
    pieces   [0    ] [1     ] [2                        ] [3                      ] [4     ]
    chosen            x        x                                                     x
    excerpts          "another ⏎ a very long line that "                            "the last"

Adjacent chosen pieces become one excerpt, so excerpts are verbatim and never overlap.

A compaction reads mostly texts that it read before, namely its earlier excerpts. The cache is keyed by text, so
results do not depend on when a text was read: a call without a compaction reads some of the new texts ahead. It reads
a bounded amount, so that no call takes noticeably longer, and only when a compaction is near; texts that are still
unread are read by the compaction itself.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final, TypeAlias

import attrs

from blocks import AssistantCompletion, Layer, is_sealed
from render.policy._context import Context
from render.summary._identifiers import Vocabulary, texts_of
from render.summary._prose import read_prose
from render.summary._text import layer_text, layers_of
from render.view._group import Entry
from render.view._view import View

# Texts and their pieces.


LINE_CHARACTERS: Final = 200
"""Characters of a piece; a longer line is divided between words."""
WHOLE_CHARACTERS: Final = 500
"""A text of at most this many characters is one piece."""
SURROUNDINGS_MIN: Final = 8
"""Least number of characters besides the term: with fewer, a piece says nothing about the term."""
Span: TypeAlias = tuple[int, int]
Line: TypeAlias = tuple[int, int, str]
"""A line's offset in its source, its number in the file (0: not known), and its text."""


@attrs.frozen(eq=False)
class Pieces:
    """The start and end offsets of a text's pieces, in order."""

    starts: list[int]
    ends: list[int]
    costs: list[int | None]
    """Tokens of each piece with its line end; None: not yet counted."""


@attrs.define(eq=False)
class Reading:
    """What is known of a text, wherever it occurs; computed on demand."""

    text: str
    names: set[str] | None = None
    """Its identifiers; None until they are looked for."""
    in_context: set[str] | None = attrs.field(default=None, init=False)
    """Those of them that it shows in context, if it is one piece; None until `names_in_context` has looked."""
    in_file: tuple[tuple[bool, int], Sequence[Line]] | None = attrs.field(default=None, init=False)
    """Its lines as they are in a file, once computed, with the arguments they depend on: whether the text
    is a call's, and the number of its first line."""
    _whole: Pieces | None = attrs.field(default=None, init=False)
    _lines: Pieces | None = attrs.field(default=None, init=False)

    def pieces(self, *, is_whole: bool) -> Pieces:
        """The pieces: the whole text as one, or its lines."""
        if is_whole:
            if self._whole is None:
                self._whole = pieces_of(self.text, is_whole=True)
            return self._whole
        if self._lines is None:
            self._lines = pieces_of(self.text, is_whole=False)
        return self._lines


@attrs.define(eq=False)
class Source:
    """A text that excerpts can be taken from: a folded block, or an earlier excerpt."""

    path: str
    """Path of the block; empty for a text that the model sees in any case."""
    seen: int
    text: str
    own: bool = False
    """Whether the agent wrote it."""
    is_call: bool = False
    """Whether it is an argument of a tool call: code, commands."""
    superseded: frozenset[str] = frozenset()
    """Lines that it replaces."""
    file: str = ""
    """The file that it shows or changes."""
    line: int = 0
    """Number in the file of its first line, or of the first change; 0: not known."""
    is_changed: bool = False
    """Whether it contradicts what the agent wrote to the file before."""
    reading: Reading = attrs.field(
        default=attrs.Factory(lambda self: Reading(self.text), takes_self=True), kw_only=True
    )
    names: set[str] = attrs.field(init=False)
    """Its identifiers, if they were looked for."""
    stale: set[int] = attrs.field(factory=set[int], init=False)
    """Offsets of lines that are no longer current."""
    worth: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    """The worth of pieces by number, in units of `_index.UNIT`; other pieces are worth nothing."""
    chosen: set[int] = attrs.field(factory=set[int], init=False)
    """The numbers of the pieces that are part of an excerpt."""
    is_whole: bool = attrs.field(init=False)
    """Whether the text is one piece."""
    pieces: Pieces = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = self.reading.names or set()
        self.is_whole = len(self.text) <= WHOLE_CHARACTERS
        self.pieces = self.reading.pieces(is_whole=self.is_whole)

    def give_up(self, start: int) -> None:
        """Mark the line at this offset as stale; from then on the text is divided into lines."""
        if not self.stale:
            self.pieces = self.reading.pieces(is_whole=False)
            self.is_whole = len(self.pieces.starts) == 1
        self.stale.add(start)

    def span(self, number: int) -> Span:
        """Start and end of a piece, without its line end."""
        return self.pieces.starts[number], self.pieces.ends[number]

    def is_stale(self, number: int) -> bool:
        """Whether a piece is no longer current."""
        if not self.stale:
            return False
        return self.text.rfind("\n", 0, self.pieces.starts[number]) + 1 in self.stale

    def piece_at(self, position: int) -> int:
        """The number of the piece at a position of the text."""
        return bisect_right(self.pieces.starts, position) - 1

    def piece(self, number: int) -> str:
        """The text of a piece."""
        return self.text[self.pieces.starts[number] : self.pieces.ends[number]]

    def line_starts(self) -> list[int]:
        """The offset of each line."""
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return list(accumulate(lengths, initial=0))[:-1]

    def stale_lines(self) -> tuple[int, ...]:
        """Indices of its stale lines, from 0."""
        if not self.stale:
            return ()
        return tuple(n for n, start in enumerate(self.line_starts()) if start in self.stale)

    def holding(self) -> Iterator[str]:
        """Its current lines, stripped."""
        lines = map(str.strip, self.text.split("\n"))
        if not self.stale:
            return lines
        gone = frozenset(self.stale_lines())
        return (line for n, line in enumerate(lines) if n not in gone)

    def add(self, number: int, worth: int) -> None:
        """Add worth to a piece, unless it is stale."""
        if not (self.stale and self.is_stale(number)):
            self.worth[number] = self.worth.get(number, 0) + worth

    def excerpts(self) -> Iterator[Span]:
        """The spans of chosen pieces; adjacent ones are joined, also across empty lines."""
        run: Span | None = None
        after = -1
        for number in sorted(self.chosen):
            start, end = self.span(number)
            if run and (number == after or not self.text[run[1] : start].strip()):
                run = run[0], end
            else:
                if run:
                    yield run
                run = start, end
            after = number + 1
        if run:
            yield run


def pieces_of(text: str, *, is_whole: bool) -> Pieces:
    """The pieces of a text: one, or its lines."""
    if is_whole:
        return Pieces([0], [len(text)], [None])
    starts, ends, start = list[int](), list[int](), 0
    for line in text.split("\n"):
        end = start + len(line)
        while end - start > LINE_CHARACTERS:
            blank = text.rfind(" ", start + LINE_CHARACTERS // 2, start + LINE_CHARACTERS)
            starts.append(start)
            start = blank + 1 or start + LINE_CHARACTERS
            ends.append(start)
        starts.append(start)
        ends.append(end)
        start = end + 1
    if text.endswith("\n"):  # nothing follows
        del starts[-1], ends[-1]
    return Pieces(starts, ends, [None] * len(starts))


def names_in_context(reading: Reading) -> set[str]:
    """The names that a text of one piece shows with enough text around their last mention; none before its names
    were looked for."""
    if reading.names is None:
        return set()
    if reading.in_context is None:
        text, names = reading.text, reading.names
        least = max(map(len, names), default=0) + SURROUNDINGS_MIN
        if _around_least(text) >= least:  # nearly every text
            reading.in_context = names
        else:
            reading.in_context = {
                term
                for term in names
                if is_surrounded(text, text.rfind(term), len(term) + SURROUNDINGS_MIN)
            }
    return reading.in_context


def _around_least(text: str) -> int:
    """The least number of characters that a line has together with its neighbouring lines."""
    lengths = [0, *map(len, text.split("\n")), 0]
    return min(map(sum, zip(lengths, lengths[1:], lengths[2:], strict=False)))


def is_surrounded(text: str, position: int, least: int) -> bool:
    """Whether the line at a position, if necessary together with its neighbouring lines, has more than `least`
    characters."""
    start, end = text.rfind("\n", 0, position), text.find("\n", position)
    if (len(text) if end < 0 else end) - start > least:
        return True
    if start > 0:
        start = text.rfind("\n", 0, start)
    if end >= 0:
        end = text.find("\n", end + 1)
    return (len(text) if end < 0 else end) - start > least


# The readings of a timeline.


@attrs.define(eq=False)
class Texts:
    """The texts read since the compaction in force, and in the period before it.

    This covers the texts of the view and the excerpts of the index; other texts are dropped at the next
    compaction.
    """

    compaction: int = 0
    """Version of the compaction in force."""
    ahead: int = 0
    """Version of the newest block that was read ahead."""
    layers: list[tuple[Layer, int]] = attrs.field(factory=list[tuple[Layer, int]])
    """The layers of the index that was counted last, with their tokens."""
    is_counted: bool = False
    """Whether that is the index that is shown now."""
    excerpts: list[str] = attrs.field(factory=list[str])
    """Its excerpts that are still to be read ahead."""
    _young: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)
    _old: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)

    @property
    def characters(self) -> int:
        """Total characters of the cached texts."""
        return sum(map(len, self._young)) + sum(map(len, self._old))

    def since(self, compaction: int) -> None:
        """After a new compaction, drop the texts that were not requested since the one before."""
        if compaction != self.compaction:
            self.compaction = compaction
            self._old, self._young = self._young, {}
            self.is_counted = False
            self.excerpts = []

    def get(self, text: str) -> Reading:
        """The cached reading of a text."""
        found = self._young.get(text)
        if found is None:
            found = self._young[text] = self._old.get(text) or Reading(text)
        return found


@attrs.frozen
class Reader:
    """Reads texts for an index: counts tokens and finds identifiers."""

    count: Callable[[str], int]
    vocabulary: Vocabulary = attrs.field(factory=Vocabulary)
    texts: Texts = attrs.field(factory=Texts)

    def names(self, text: str) -> set[str]:
        """The identifiers of a text."""
        return self.vocabulary.identifiers(text)

    def read(self, text: str) -> Reading:
        """The reading of a text, with its names."""
        reading = self.texts.get(text)
        if reading.names is None:
            reading.names = self.vocabulary.identifiers(text)
        return reading

    def cost(self, source: Source, number: int) -> int:
        """Tokens of a piece as a line of its own."""
        costs = source.pieces.costs
        cost = costs[number]
        if cost is None:
            cost = costs[number] = self.count(f"{source.piece(number)}\n")
        return cost

    def layers_cost(self, layers: Iterable[Layer]) -> int:
        """Tokens of the layers of an index as they are shown; a layer that was counted before is not
        counted again."""
        known, texts = self.texts.layers, self.texts
        texts.layers = [(layer, self._layer_cost(layer, known)) for layer in layers]
        texts.is_counted = True
        return sum(tokens for _, tokens in texts.layers)

    def _layer_cost(self, layer: Layer, known: Iterable[tuple[Layer, int]]) -> int:
        found = (tokens for each, tokens in known if each is layer)
        return next(found, 0) or self.count(layer_text(layer))


def reader_of(view: View, context: Context) -> Reader:
    """The reader of a timeline; its caches are in the storage that the timeline's views share."""
    shared: dict[Any, Any] = view.shared
    if "words" not in shared:
        shared["words"] = Vocabulary()
    key = "texts", context.counter.name
    if key not in shared:
        shared[key] = Texts()
    texts: Texts = shared[key]
    texts.since(view.compaction.version if view.compaction else 0)
    return Reader(context.counter.count, shared["words"], texts)


# Reading ahead.


AHEAD_SHARE: Final = 0.4
"""Reading begins when the request has this share of the tokens that trigger a compaction."""
CALL_CHARACTERS: Final = 6_000
"""Characters of text that one call reads; the last text is always read to its end."""
TEXT_CHARACTERS: Final = 30_000
"""Longer texts are left to the compaction."""


def read_ahead(view: View, context: Context) -> None:
    """Count the index that is shown; or, if it is counted, read its excerpts, and then the oldest unread texts."""
    reader, left = reader_of(view, context), CALL_CHARACTERS
    texts = reader.texts
    if view.compaction and not texts.is_counted:
        layers = layers_of(view.compaction.event.summary.digest.index)
        reader.layers_cost(layers)
        texts.excerpts = [excerpt.text for layer in layers for excerpt in layer.excerpts]
        return
    while texts.excerpts and left > 0:
        left -= _read(texts.excerpts.pop(), reader)
    for entry in _since(view, texts.ahead):
        if left <= 0:
            return
        is_quoted = entry.original is None and not is_sealed(entry.block)
        for text in texts_of(entry.block) if is_quoted else ():
            left -= _read(text, reader)
        if isinstance(entry.block, AssistantCompletion):
            read_prose(entry.block.text)
        texts.ahead = entry.version


def _read(text: str, reader: Reader) -> int:
    """Read a text, unless it is too long; returns the characters that were read."""
    if len(text) > TEXT_CHARACTERS:
        return 0
    reading, is_whole = reader.read(text), len(text) <= WHOLE_CHARACTERS
    reading.pieces(is_whole=is_whole)
    if is_whole:
        names_in_context(reading)
    return len(text)


def _since(view: View, version: int) -> Iterator[Entry]:
    """The entries after a version."""
    for group in view.groups[bisect_right(view.groups, version, key=attrgetter("last")) :]:
        yield from (entry for entry in group.entries if entry.version > version)
