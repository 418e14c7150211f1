"""Dividing a text into pieces that an index selects one by one: its lines, or a short text as a whole.

    text     a line ⏎ another ⏎ a very long line that goes on and on ... to its end ⏎ the last
    pieces   [0    ] [1     ] [2                        ] [3                      ] [4     ]
    chosen            x        x                                                     x
    excerpts          "another ⏎ a very long line that "                            "the last"

Adjacent chosen pieces become one excerpt, so excerpts are verbatim and never overlap.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import attrs

from render.summary._outside import Line

LINE_CHARACTERS: Final = 200
"""Characters of a piece; a longer line is divided between words."""
WHOLE_CHARACTERS: Final = 500
"""A text of at most this many characters is one piece."""

Span: TypeAlias = tuple[int, int]
_NONE: Final = frozenset[int]()
_ZERO: Final = array("I", (0,))


@attrs.frozen(eq=False)
class Pieces:
    """The start and end offsets of a text's pieces, in order."""

    starts: "array[int]"
    ends: "array[int]"
    costs: "array[int]"
    """Tokens of each piece with its line end; 0: not yet counted."""


@attrs.define(eq=False)
class Reading:
    """What is known of a text, wherever it occurs; computed on demand."""

    text: str
    names: set[str] | None = None
    """Its identifiers; None until they are looked for."""
    in_context: set[str] | None = attrs.field(default=None, init=False)
    """Those of them that it shows in context, if it is one piece; None until `_mentions` has looked."""
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
    stale: set[int] | frozenset[int] = attrs.field(init=False)
    """Offsets of lines that are no longer current."""
    worth: dict[int, int] = attrs.field(init=False)
    """The worth of pieces by number, in units of `_market.UNIT`; other pieces are worth nothing."""
    chosen: set[int] | frozenset[int] = attrs.field(init=False)
    is_whole: bool = attrs.field(init=False)
    """Whether the text is one piece."""
    pieces: Pieces = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # There are thousands of sources, and most have no stale or chosen lines: factories and
        # separate sets would cost time here and in the garbage collector.
        self.stale, self.worth, self.chosen = _NONE, {}, _NONE
        self.names = self.reading.names or set()
        self.is_whole = len(self.text) <= WHOLE_CHARACTERS
        self.pieces = self.reading.pieces(is_whole=self.is_whole)

    def give_up(self, start: int) -> None:
        """Mark the line at this offset as stale; from then on the text is divided into lines."""
        if not isinstance(self.stale, set):
            self.pieces = self.reading.pieces(is_whole=False)
            self.is_whole = len(self.pieces.starts) == 1
            self.stale = set()
        self.stale.add(start)

    def choose(self, number: int) -> None:
        """Mark a piece as part of an excerpt."""
        if not isinstance(self.chosen, set):
            self.chosen = set()
        self.chosen.add(number)

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
        return Pieces(_ZERO, array("I", (len(text),)), _ZERO[:])
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
    return Pieces(array("I", starts), array("I", ends), array("I", [0]) * len(starts))
