"""A text in pieces that an index chooses one by one: its lines, or all of it where it is short.

    text     a line ⏎ another ⏎ a very long line that goes on and on ... to its end ⏎ the last
    pieces   [0    ] [1     ] [2                        ] [3                      ] [4     ]
    chosen            x        x                                                     x
    excerpts          "another ⏎ a very long line that "                            "the last"

Pieces that stand next to each other become one excerpt, so excerpts are verbatim and never overlap.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import attrs

from render.summary._outside import Line

LINE_CHARACTERS: Final = 200
"""Of a piece; a longer line is cut between words."""
WHOLE_CHARACTERS: Final = 500
"""A text that is no longer is one piece: half of it says little."""

Span: TypeAlias = tuple[int, int]
_NONE: Final = frozenset[int]()


@attrs.frozen(eq=False)
class Pieces:
    """Where the pieces of a text begin and where they end, in order."""

    starts: "array[int]"
    ends: "array[int]"
    costs: "array[int]"
    """What each costs in tokens, with the end of its line; 0: nobody has counted it."""


@attrs.define(eq=False)
class Reading:
    """What is known of a text, wherever it stands."""

    text: str
    names: set[str] | None = None
    """Its identifiers, once somebody has looked for them."""
    in_file: tuple[tuple[bool, int], Sequence[Line]] | None = attrs.field(default=None, init=False)
    """Its lines as they stand in a file, once somebody has looked for them; before them, whether it is what
    the agent gave to a tool, and the number of its first line: what else it depends on."""
    _whole: Pieces | None = attrs.field(default=None, init=False)
    _lines: Pieces | None = attrs.field(default=None, init=False)

    def pieces(self, *, is_whole: bool) -> Pieces:
        """Its pieces: itself, or its lines."""
        if is_whole:
            if self._whole is None:
                self._whole = pieces_of(self.text, is_whole=True)
            return self._whole
        if self._lines is None:
            self._lines = pieces_of(self.text, is_whole=False)
        return self._lines


@attrs.define(eq=False)
class Source:
    """A text that excerpts can be cut from: a folded block, or an earlier excerpt."""

    path: str
    """Empty: of a text that the model sees anyway."""
    seen: int
    text: str
    own: bool = False
    """Whether the agent has written it."""
    is_call: bool = False
    """Whether it is what the agent gave to a tool: code, commands."""
    superseded: frozenset[str] = frozenset()
    """Lines that it replaces."""
    file: str = ""
    """The file that it shows, or changes."""
    line: int = 0
    """Number in the file of its first line, or of where it changes the file; 0: not known."""
    is_changed: bool = False
    """Whether it contradicts what the agent wrote to the file before."""
    reading: Reading = attrs.field(
        default=attrs.Factory(lambda self: Reading(self.text), takes_self=True), kw_only=True
    )
    stale: set[int] | frozenset[int] = attrs.field(init=False)
    """Where lines begin that no longer hold."""
    worth: dict[int, float] = attrs.field(init=False)
    """Of the pieces that are worth anything, by number."""
    chosen: set[int] | frozenset[int] = attrs.field(init=False)
    is_whole: bool = attrs.field(init=False)
    """Whether it is one piece."""
    starts: "array[int]" = attrs.field(init=False)
    """Where each piece begins, in order."""
    ends: "array[int]" = attrs.field(init=False)
    costs: "array[int]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # There are thousands of them, and of most no line goes stale and none is chosen: factories, and sets
        # of their own, would be work, for the garbage collector, too.
        self.stale, self.worth, self.chosen = _NONE, {}, _NONE
        self._cut(is_whole=len(self.text) <= WHOLE_CHARACTERS)

    def _cut(self, *, is_whole: bool) -> None:
        pieces = self.reading.pieces(is_whole=is_whole)
        self.starts, self.ends, self.costs = pieces.starts, pieces.ends, pieces.costs
        self.is_whole = len(self.starts) == 1

    def give_up(self, start: int) -> None:
        """The line that begins there no longer holds: it is told from the others from now on."""
        if not isinstance(self.stale, set):
            self._cut(is_whole=False)
            self.stale = set()
        self.stale.add(start)

    def choose(self, number: int) -> None:
        """A piece is to be in an excerpt."""
        if not isinstance(self.chosen, set):
            self.chosen = set()
        self.chosen.add(number)

    @property
    def names(self) -> set[str]:
        """Its identifiers, as far as they were looked for."""
        return self.reading.names or set()

    def span(self, number: int) -> Span:
        """Start and end of a piece; a line's end is in none of them."""
        return self.starts[number], self.ends[number]

    def is_stale(self, number: int) -> bool:
        """Whether a piece no longer holds."""
        if not self.stale:
            return False
        return self.text.rfind("\n", 0, self.starts[number]) + 1 in self.stale

    def piece_at(self, position: int) -> int:
        """The number of the piece that holds a position of the text."""
        return bisect_right(self.starts, position) - 1

    def piece(self, number: int) -> str:
        """The text of a piece."""
        return self.text[self.starts[number] : self.ends[number]]

    def line_starts(self) -> list[int]:
        """Where its lines begin."""
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return list(accumulate(lengths, initial=0))[:-1]

    def stale_lines(self) -> tuple[int, ...]:
        """Its lines that no longer hold, from 0."""
        if not self.stale:
            return ()
        return tuple(n for n, start in enumerate(self.line_starts()) if start in self.stale)

    def holding(self) -> Iterator[str]:
        """Its lines that hold, without white space around them."""
        lines = self.text.split("\n")
        gone = frozenset(self.stale_lines())
        return (line.strip() for n, line in enumerate(lines) if n not in gone)

    def add(self, number: int, worth: float) -> None:
        """Let a piece be worth more, if it holds."""
        if not (self.stale and self.is_stale(number)):
            self.worth[number] = self.worth.get(number, 0.0) + worth

    def excerpts(self) -> Iterator[Span]:
        """The chosen pieces, those that touch together; an empty line between two is no gap."""
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
        return Pieces(array("I", [0]), array("I", [len(text)]), array("I", [0]))
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
