"""Texts that excerpts can be taken from, with their pieces and names.

A text is divided into pieces that are chosen one by one: its lines, a short text as a whole, and of a very long line the
sentences.

    text     a line ⏎ another ⏎ a very long line that goes on; and on, to its end ⏎ the last
    pieces   [0    ] [1     ] [2                             ][3                ] [4     ]
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

import attrs

from render.policy._context import Context
from render.summary._identifiers import Vocabulary
from render.view._view import View

LINE_CHARACTERS: Final = 240
"""Characters of a piece; a longer line is divided at the end of a sentence or between words."""
WHOLE_CHARACTERS: Final = 300
"""A text of at most this many characters, and of few lines, is one piece."""
WHOLE_LINES: Final = 4
_ENDS: Final = (". ", "; ", ", ", " ")
"""Where a long line is divided, best first."""
Span: TypeAlias = tuple[int, int]
Line: TypeAlias = tuple[int, int, str]
"""A line's offset in its source, its number in the file (0: not known), and its text."""


@attrs.frozen(eq=False)
class Pieces:
    """The start and end offsets of a text's pieces, in order."""

    starts: list[int]
    ends: list[int]


@attrs.define(eq=False)
class Reading:
    """What is known of a text, wherever it occurs."""

    text: str
    names: set[str] = attrs.field(factory=set[str])
    """Its identifiers."""
    in_file: tuple[tuple[bool, int], Sequence[Line]] | None = attrs.field(default=None, init=False)
    """Its lines as they are in a file, once computed, with the arguments they depend on: whether the text
    is a call's, and the number of its first line."""


@attrs.define(eq=False)
class Source:
    """A text that excerpts can be taken from: of a folded block, or an earlier excerpt."""

    path: str
    """Path of the block; empty for a text that the model sees in any case."""
    seen: int
    text: str
    own: bool = False
    """Whether the agent wrote it."""
    is_call: bool = False
    """Whether it is from a call: what the agent wrote to a file, or told another agent."""
    call: str = ""
    """Where it is from, on one line."""
    under: tuple[str, ...] = ()
    """The lines above an earlier excerpt that say where it stands."""
    file: str = ""
    """The file that it shows or changes."""
    line: int = 0
    """Number in the file of its first line, or of the first change; 0: not known."""
    is_changed: bool = False
    """Whether it contradicts what the agent wrote to the file before."""
    reading: Reading = attrs.field(
        default=attrs.Factory(lambda self: Reading(self.text), takes_self=True), kw_only=True
    )
    stale: set[int] = attrs.field(factory=set[int], init=False)
    """Offsets of lines that are no longer current."""
    worth: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    """The worth of pieces by number, in units of `_excerpts.UNIT`; other pieces are worth nothing."""
    chosen: set[int] = attrs.field(factory=set[int], init=False)
    """The numbers of the pieces that are part of an excerpt."""
    is_whole: bool = attrs.field(init=False)
    """Whether the text is one piece."""
    pieces: Pieces = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        text = self.text
        self.is_whole = len(text) <= WHOLE_CHARACTERS and text.count("\n") < WHOLE_LINES
        self.pieces = Pieces([0], [len(text)]) if self.is_whole else pieces_of(text)

    @property
    def names(self) -> set[str]:
        """Its identifiers."""
        return self.reading.names

    def give_up(self, start: int) -> None:
        """Mark the line at this offset as stale; from then on the text is divided into lines."""
        if self.is_whole:
            self.pieces = pieces_of(self.text)
            self.is_whole = False
        self.stale.add(start)

    def is_stale(self, number: int) -> bool:
        """Whether a piece is no longer current."""
        return bool(self.stale) and self.line_start(number) in self.stale

    def line_start(self, number: int) -> int:
        """The offset of the line that a piece begins in."""
        return self.text.rfind("\n", 0, self.pieces.starts[number]) + 1

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

    def holding(self) -> Iterator[str]:
        """Its current lines, stripped."""
        for start, line in zip(self.line_starts(), self.text.split("\n"), strict=True):
            if start not in self.stale:
                yield line.strip()

    def add(self, number: int, worth: int) -> None:
        """Add worth to a piece, unless it is stale."""
        if not self.is_stale(number):
            self.worth[number] = self.worth.get(number, 0) + worth


def pieces_of(text: str) -> Pieces:
    """The pieces of a text: its lines, and the parts of very long lines."""
    starts, ends, start = list[int](), list[int](), 0
    for line in text.split("\n"):
        end = start + len(line)
        while end - start > LINE_CHARACTERS:
            after = _divided(text, start)
            starts.append(start)
            ends.append(after)
            start = after
        starts.append(start)
        ends.append(end)
        start = end + 1
    if text.endswith("\n"):  # nothing follows
        del starts[-1], ends[-1]
    return Pieces(starts, ends)


def _divided(text: str, start: int) -> int:
    """Where the part of a long line that begins at `start` ends."""
    end = start + LINE_CHARACTERS
    for mark in _ENDS:
        if (found := text.rfind(mark, start + LINE_CHARACTERS // 3, end)) > 0:
            return found + len(mark)
    return end


@attrs.frozen
class Reader:
    """Reads texts for excerpts: counts tokens and finds identifiers."""

    count: Callable[[str], int]
    vocabulary: Vocabulary = attrs.field(factory=Vocabulary)

    def names(self, text: str) -> set[str]:
        """The identifiers of a text."""
        return self.vocabulary.identifiers(text)

    def read(self, text: str) -> Reading:
        """The reading of a text, with its names."""
        return Reading(text, self.names(text))


def reader_of(view: View, context: Context) -> Reader:
    """The reader of a timeline; the words that it knows are in the storage that the timeline's views share."""
    shared: dict[Any, Any] = view.shared
    if "words" not in shared:
        shared["words"] = Vocabulary()
    return Reader(context.counter.count, shared["words"])
