"""Partial copies of files: what the log has shown of each file, with all changes since.

A copy has *stretches*: adjacent lines of the file, with the number of the first. Between them are lines that nobody has
seen. A view adds lines, a change replaces them and moves the numbers behind it:

    1  import os                     edit of line 1 into two lines         1  import os
       ...                                                                 2  import re
    7  def total(cart):                                                       ...
    8      return 0                                                        8  def total(cart):
                                                                           9      return 0

A copy is never wrong, only incomplete: what a change may have touched without saying where is forgotten, and numbers that
it may have moved are no longer known (0). If a view contradicts the copy, something else has changed the file, and all
that the view does not show is forgotten.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import attrs

TELLING: Final = 12
"""A line of this many characters, without white space around it, hardly occurs twice in a file."""


class Row(NamedTuple):
    """One line of a file."""

    text: str
    seen: int
    """Version of the block that showed or wrote it last."""
    edited: int = 0
    """Version of the last change of it; 0: none that is known."""
    sources: tuple[int, ...] = ()
    """Versions of the blocks that its parts come from; empty: it was shown as a whole by that of `seen`."""


@attrs.define(eq=False)
class Stretch:
    """Adjacent lines of a file."""

    line: int
    """Number of the first; 0: not known."""
    rows: list[Row]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(row.text for row in self.rows)


@attrs.frozen(kw_only=True)
class Edit:
    """A change of a file: one text instead of another."""

    file: str
    old: str | None
    """What is replaced, exactly; None: the whole file, or with `is_added` nothing."""
    new: str | None
    """None: it is not known."""
    is_all: bool = False
    """Whether every occurrence is replaced, not the only one."""
    is_lines: bool = False
    """Whether the texts are whole lines, each with its line end, and the place is the first that matches, as in a patch."""
    is_added: bool = False
    """Whether the new text is added at the end of the file."""
    is_part: bool = False
    """Whether some lines of the new text are not known."""


@attrs.define(eq=False)
class Copy:
    """What is known of one file."""

    stretches: list[Stretch] = attrs.field(factory=list[Stretch])
    """Those with numbers in order, neither overlapping nor adjacent; then those without."""
    changed: int = 0
    """Version of the last change."""
    doubt: int = 0
    """Version of the last call that may have changed the file; what was seen before may differ from it."""

    def show(self, view: Sequence[Stretch], asked: int) -> None:
        """Add the lines of a view that was asked for at version `asked`."""
        if asked < self.changed:
            return  # it may be older than the change
        view = [stretch for stretch in view if stretch.rows]
        known = self._numbered()
        placed = [_placed(stretch, known) for stretch in view]
        new = {number: row for stretch in placed for number, row in _numbers(stretch)}
        if any(_differ(known[number], row) for number, row in new.items() if number in known):
            self._distrust(new, max(asked, *(row.seen - 1 for row in new.values())))
            placed, known = view, {}  # no number is certain but its own
            new = {number: row for stretch in placed for number, row in _numbers(stretch)}
        for number, row in new.items():
            before = known.get(number)
            known[number] = row if before is None else _latest(before, row)
        telling = {text for stretch in placed for text in _telling(stretch.rows)}
        loose = [
            part for each in self.stretches if not each.line for part in _without(each, telling)
        ]
        loose += [each for each in placed if not each.line]
        self.stretches = [*_joined(known), *loose]

    def _distrust(self, view: Collection[int], version: int) -> None:
        """Something else has changed the file: what a view with these numbers does not show may differ, and has no
        numbers."""
        rest = {number: row for number, row in self._numbered().items() if number not in view}
        loose = [stretch for stretch in self.stretches if not stretch.line]
        self.stretches = [*(Stretch(0, each.rows) for each in _joined(rest)), *loose]
        self.doubt = max(self.doubt, version)

    def change(self, edit: Edit, version: int, call: int) -> None:
        """Apply a change that succeeded at this version; `call` is that of its call."""
        self.changed, mark = version, Row("", version, version, (call,))
        if edit.new is None or edit.is_part:
            self.stretches = []
        elif edit.is_added:
            self.stretches += _written(0, _lines(edit.new), mark)
        elif edit.old is None:
            self.stretches = _written(1, _lines(edit.new), mark)
        else:
            self._replace(edit.old, edit.new, edit, mark)

    def _replace(self, old: str, new: str, edit: Edit, mark: Row) -> None:
        places = [
            (stretch, place) for stretch in self.stretches for place in _found(stretch, old, edit)
        ]
        numbered = [place for place in places if place[0].line]
        if not edit.is_all and len(numbered) == 1 < len(places):
            self._forget(stretch for stretch, _ in places if not stretch.line)
            places = numbered
        is_certain = not edit.is_lines or any(map(_is_telling, old.split("\n")))
        if places and edit.is_all:
            for stretch, place in reversed(places):
                stretch.rows[place.first : place.last + 1] = _rows(stretch, place, new, mark)
            self._trim(_own(old, new, edit), self.stretches)
            if new.count("\n") != old.count("\n"):
                self._move(0, None)
        elif len(places) == 1 and is_certain:
            self._replace_one(*places[0], new, edit, mark)
            loose = [each for each in self.stretches if not each.line and each is not places[0][0]]
            self._trim(_own(old, new, edit), loose)
        elif places:
            self._forget(stretch for stretch, _ in places)
            self._move(0, None)
        else:
            self._replace_unseen(old, new, edit, mark)
        self.stretches = [each for each in self.stretches if each.rows]

    def _replace_one(
        self, stretch: Stretch, place: "_Place", new: str, edit: Edit, mark: Row
    ) -> None:
        rows = _rows(stretch, place, new, mark)
        is_whole = not (place.before or place.after)
        if is_whole and _is_removal(new, edit):  # with the line end, or without: tools differ
            self._move(stretch.line + place.first if stretch.line else 0, None)
            self.stretches.append(Stretch(0, stretch.rows[place.last + 1 :]))
            del stretch.rows[place.first :]
            return
        moved = len(rows) - (place.last - place.first + 1)
        if moved:
            self._move(
                stretch.line + place.last if stretch.line else 0, moved if stretch.line else None
            )
        stretch.rows[place.first : place.last + 1] = rows

    def _replace_unseen(self, old: str, new: str, edit: Edit, mark: Row) -> None:
        """A change whose place is not shown as a whole: of its lines, those are added that are whole."""
        self._trim(_own(old, new, edit), self.stretches)
        if new.count("\n") != old.count("\n") or _is_removal(new, edit):
            self._move(0, None)
        texts = _lines(new) if edit.is_lines else new.split("\n")[1:-1]
        if any(map(_is_telling, texts)):
            self.stretches += _written(0, texts, mark)

    def _trim(self, old: str, stretches: Iterable[Stretch]) -> None:
        """Forget the lines at the ends of stretches that may be a part of `old`."""
        lines = old.split("\n")
        for stretch in stretches:
            counts = range(min(len(lines), len(stretch.rows)), 0, -1)
            text, size = stretch.text, len(stretch.rows)
            if f"\n{text}\n" in f"\n{old}\n":
                stretch.rows = []
                continue
            behind = next((n for n in counts if text.endswith("\n".join(lines[:n]))), 0)
            before = next((n for n in counts if text.startswith("\n".join(lines[-n:]))), 0)
            stretch.rows = stretch.rows[before : size - behind]
            stretch.line += before if stretch.line else 0
        self.stretches = [each for each in self.stretches if each.rows]

    def _move(self, line: int, lines: int | None) -> None:
        """Move the numbers behind a line by so many lines; None: by an unknown number."""
        for stretch in self.stretches:
            if stretch.line > line:
                stretch.line = 0 if lines is None else max(stretch.line + lines, 0)
        self.stretches.sort(key=lambda stretch: (not stretch.line, stretch.line))

    def _forget(self, stretches: Iterable[Stretch]) -> None:
        gone = set(map(id, stretches))
        self.stretches = [each for each in self.stretches if id(each) not in gone]

    def _numbered(self) -> dict[int, Row]:
        return {number: row for stretch in self.stretches for number, row in _numbers(stretch)}


def _without(stretch: Stretch, telling: Collection[str]) -> Iterator[Stretch]:
    """The parts of a stretch between these lines, as far as they have other telling lines."""
    rows = list[Row]()
    for row in (*stretch.rows, None):
        if row is not None and row.text.strip() not in telling:
            rows.append(row)
            continue
        if _telling(rows):
            yield Stretch(0, rows)
        rows = []


def _placed(stretch: Stretch, known: Mapping[int, Row]) -> Stretch:
    """The stretch with the number that it has by a line that is known; without one, as it is."""
    if stretch.line or not known:
        return stretch
    places: dict[str, list[int]] = {}
    for number, row in known.items():
        places.setdefault(row.text.strip(), []).append(number)
    for index, row in enumerate(stretch.rows):
        found = places.get(row.text.strip(), ()) if _is_telling(row.text) else ()
        if len(found) == 1 and found[0] > index:
            return Stretch(found[0] - index, stretch.rows)
    return stretch


def _own(old: str, new: str, edit: Edit) -> str:
    """What is replaced, without a line end at its beginning or end that stays."""
    if old[-1:] == new[-1:] == "\n" or edit.is_lines:
        old = old.removesuffix("\n")
    return old[1:] if old[:1] == new[:1] == "\n" and not edit.is_lines else old


def _written(line: int, texts: Sequence[str], mark: Row) -> list[Stretch]:
    """A stretch of lines that were written at once; none if there are none."""
    return [Stretch(line, [mark._replace(text=text) for text in texts])] if texts else []


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _numbers(stretch: Stretch) -> Iterator[tuple[int, Row]]:
    if stretch.line:
        yield from enumerate(stretch.rows, stretch.line)


def _joined(known: Mapping[int, Row]) -> Iterator[Stretch]:
    """Stretches of rows by their numbers."""
    stretch: Stretch | None = None
    for number in sorted(known):
        if stretch and stretch.line + len(stretch.rows) == number:
            stretch.rows.append(known[number])
        else:
            if stretch:
                yield stretch
            stretch = Stretch(number, [known[number]])
    if stretch:
        yield stretch


def _latest(before: Row, row: Row) -> Row:
    """The row of a view of a line that is known with the same text."""
    return Row(row.text, max(before.seen, row.seen), max(before.edited, row.edited), row.sources)


def _differ(one: Row, other: Row) -> bool:
    return one.text.rstrip() != other.text.rstrip()


def _is_telling(text: str) -> bool:
    return len(text.strip()) >= TELLING


def _telling(rows: Iterable[Row]) -> set[str]:
    return {row.text.strip() for row in rows if _is_telling(row.text)}


def _is_removal(new: str, edit: Edit) -> bool:
    return not new and not edit.is_lines and not (edit.old or "").endswith("\n")


class _Place(NamedTuple):
    """Where a text stands in a stretch: the rows that contain it, and the rest of the first and the last of them."""

    first: int
    last: int
    before: str = ""
    after: str = ""
    is_closed: bool = False
    """Whether the text ends with the end of the last row, so that the line end of the new text is that of its last row."""


def _found(stretch: Stretch, old: str, edit: Edit) -> Iterator[_Place]:
    """The places in a stretch at which the old text stands."""
    if not old.strip():
        return
    if edit.is_lines:
        yield from _alike(stretch, _lines(old))
        return
    text, start = stretch.text, 0
    if old.endswith("\n") and (edit.new or "").endswith("\n") and text.endswith(old[:-1]):
        text = f"{text}\n"
    while (start := text.find(old, start)) >= 0:
        first = text.count("\n", 0, start)
        last = min(first + old.count("\n"), len(stretch.rows) - 1)
        line, end = text.rfind("\n", 0, start) + 1, text.find("\n", start + len(old))
        after = text[start + len(old) : end if end >= 0 else len(text)]
        yield _Place(first, last, text[line:start], after, first + old.count("\n") > last)
        start += len(old)


def _alike(stretch: Stretch, lines: Sequence[str]) -> Iterator[_Place]:
    """The places of rows that are these lines, or the same except for white space around them."""
    for how in (str, str.strip):
        wanted, texts = list(map(how, lines)), [how(row.text) for row in stretch.rows]
        ends = range(len(wanted), len(texts) + 1)
        found = [
            end
            for end in ends
            if texts[end - 1] == wanted[-1] and texts[end - len(wanted) : end] == wanted
        ]
        if found:
            yield from (_Place(end - len(wanted), end - 1, is_closed=True) for end in found)
            return


def _rows(stretch: Stretch, place: _Place, new: str, mark: Row) -> list[Row]:
    """The rows instead of those at a place."""
    text = f"{place.before}{new}{place.after}"
    texts = _lines(text) if place.is_closed else text.split("\n")
    gone = stretch.rows[place.first], stretch.rows[place.last]
    rows = [mark._replace(text=text) for text in texts]
    for index, row in zip((0, -1), gone, strict=True):
        if rows and (place.before, place.after)[index]:
            rows[index] = rows[index]._replace(
                sources=(*mark.sources, *(row.sources or (row.seen,)))
            )
    return rows
