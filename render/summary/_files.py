"""Files as folded texts show them: which lines still hold, and where in the file they stand.

Reads, writes, edits and patches of a file are followed in log order; what is newer wins:

    read      its lines hold; earlier copies of them, and what had the same numbers, do not
    edit      its new text holds, what it replaced does not
    write     its text holds, and nothing from before

A line is told from another by its text without the white space around it and without the number that a
viewer put before it.  So a line that stands in a file twice may be given up with the other; it is never
shown as one that holds when an edit has removed it.  What commands, other programs and people do to a file
is not known here, until it is read again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import ToolCall, ToolResult, tool_kind, tool_target, written_paths
from render.summary._pieces import Source
from render.view._group import Entry

TELLING: Final = 20
"""Characters of a line that a file hardly holds twice."""
_NUMBER: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t|: |\|)")
_WORD: Final = re.compile(r"\w")
_FIRST: Final = ("offset", "start_line", "line_start", "view_range")
_WHOLE: Final = ("content", "contents", "file_text")
_PATCHES: Final = ("input", "patch")
_PATCHED: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")

Line: TypeAlias = tuple[int, int, str]
"""Where it begins in its source, its number in the file (0: not known), and its text."""
_Place: TypeAlias = tuple[Source, int, int]


@attrs.frozen(kw_only=True)
class Change:
    """What a call does to a file."""

    file: str
    old: tuple[str, ...] | None
    """Lines that it replaces; None: all."""
    new: tuple[str, ...]


@attrs.define(eq=False)
class _File:
    """What is known of one file: where each of its lines was seen last."""

    lines: dict[str, list[_Place]] = attrs.field(factory=dict[str, list[_Place]])
    numbers: dict[int, _Place] = attrs.field(factory=dict[int, _Place])

    def read(self, source: Source, lines: Sequence[Line]) -> None:
        """Lines were shown; earlier copies of them are no longer needed."""
        for _, number, text in lines:
            if number in self.numbers:
                _give_up([self.numbers.pop(number)])
            if len(text) >= TELLING:
                _give_up(self.lines.pop(text, ()))
        self.add(source, lines)

    def add(self, source: Source, lines: Iterable[Line]) -> None:
        for start, number, text in lines:
            place = source, start, number
            self.lines.setdefault(text, []).append(place)
            if number:
                self.numbers[number] = place

    def change(self, change: Change) -> int:
        """Give up what a change replaces; the number of the line where it does so, if that is known."""
        if change.old is None:
            gone = list(self.lines)
        else:
            gone = [text for text in change.old if text not in change.new]
            gone += self._parts(change.old)
        known = [*gone, *(change.old or ())]
        numbers = [n for text in known for _, _, n in self.lines.get(text, ()) if n]
        for text in gone:
            _give_up(self.lines.pop(text, ()))
        return min(numbers, default=0) if change.old else 1

    def _parts(self, old: Sequence[str]) -> Iterator[str]:
        """Lines of which the first or the last line of what is replaced is only a part."""
        if not old:
            return
        first, last = old[0], old[-1]
        if len(old) == 1 and first not in self.lines:
            yield from (text for text in self.lines if first in text)
        elif len(old) > 1:
            if first not in self.lines:
                yield from (text for text in self.lines if text.endswith(first))
            if last not in self.lines:
                yield from (text for text in self.lines if text.startswith(last))


def _give_up(places: Iterable[_Place]) -> None:
    for source, start, _ in places:
        source.stale.add(start)


def follow(earlier: Iterable[Source], folded: Sequence[tuple[Entry, Sequence[Source]]]) -> None:
    """Tell sources which of their lines no longer hold, and of which file they are.

    `earlier`: excerpts that an index had before, in log order.
    """
    files = dict[str, _File]()
    for source in earlier:
        if source.file:
            held = [line for line in _lines(source) if line[0] not in source.stale]
            files.setdefault(source.file, _File()).read(source, held)
    done = {e.pair for e, _ in folded if isinstance(e.block, ToolResult) and _went_well(e.block)}
    calls = {e.pair: e.block for e, _ in folded if isinstance(e.block, ToolCall)}
    for entry, sources in folded:
        call = calls.get(entry.pair)
        if call is None or entry.pair not in done:
            continue
        if isinstance(entry.block, ToolCall):
            _apply(list(changes_of(call)), sources, files)
        elif isinstance(entry.block, ToolResult):
            _show(call, entry.block, sources, files)


def _went_well(result: ToolResult) -> bool:
    return not result.is_error and result.envelope.outcome != "failure"


def _apply(changes: Sequence[Change], sources: Iterable[Source], files: dict[str, _File]) -> None:
    names = {change.file for change in changes}
    lines = [0]
    for change in changes:
        lines.append(files.setdefault(change.file, _File()).change(change))
    if len(names) != 1:
        return
    new = {text for change in changes for text in change.new}
    for source in sources:
        source.file, source.line = changes[0].file, min(filter(None, lines), default=0)
        files[source.file].add(source, (line for line in _lines(source) if line[2] in new))


def _show(
    call: ToolCall, result: ToolResult, sources: Iterable[Source], files: dict[str, _File]
) -> None:
    kind = tool_kind(call.name, call.input, result.envelope)
    names = (tool_target(call.input, result.envelope),) if kind == "read" else ()
    if kind == "write":
        names = _names(written_paths(call.name, call.input, result.envelope))
    if len(names) != 1 or not names[0]:
        return
    for source in sources:
        source.line = _first_line(call.input) if kind == "read" else 0
        lines = list(_lines(source))
        if lines:
            source.file = names[0]
            files.setdefault(source.file, _File()).read(source, lines)


def _names(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths as `tool_target` gives them."""
    return tuple(" ".join(path.split()) for path in paths)


def _first_line(arguments: Mapping[str, Any]) -> int:
    for name in _FIRST:
        value = arguments.get(name)
        if isinstance(value, list) and value:
            value = cast("list[Any]", value)[0]
        if isinstance(value, int) and value > 0:
            return value
    return 1


def _lines(source: Source) -> Iterator[Line]:
    """The lines of a source that say anything, as they stand in the file."""
    starts, texts = source.line_starts(), source.text.split("\n")
    numbers = [] if source.is_call else numbers_in(texts, source.line)
    is_numbered = any(numbers)
    for place, text in enumerate(texts):
        number = numbers[place] if numbers else 0
        if is_numbered:
            if not number:
                continue
            text = text[_NUMBER.match(text).end() :]
        elif not source.is_call:
            if not source.line:
                return
            number = source.line + place
        elif text.startswith("+"):
            text = text[1:]
        if _WORD.search(text):
            yield starts[place], number, text.strip()


def line_at(source: Source, position: int) -> int:
    """The number in its file of the line at a position, as far as it is known."""
    if not source.file or source.is_call:
        return source.line
    start = source.text.rfind("\n", 0, position) + 1
    shown = _NUMBER.match(source.text, start)
    return int(shown[1]) if shown else source.line + source.text.count("\n", 0, position)


def numbers_in(texts: Sequence[str], first: int) -> list[int]:
    """The number that a viewer put before each line, 0 where it did not."""
    found = [_NUMBER.match(text) for text in texts]
    numbers = [int(each[1]) if each else 0 for each in found]
    around = [-1, *numbers, -1]
    return [
        number
        if number
        and (number in (first, around[place] + 1, around[place + 2] - 1))
        else 0
        for place, number in enumerate(numbers)
    ]


def changes_of(call: ToolCall) -> Iterator[Change]:
    """What a call does to files, as far as its arguments tell."""
    if tool_kind(call.name, call.input) != "write":
        return
    files = _names(written_paths(call.name, call.input))
    if len(files) == 1:
        pairs = list(_pairs(call.input))
        for old, new in pairs:
            yield Change(file=files[0], old=_said(old), new=_said(new))
        if not pairs:
            for name in _WHOLE:
                if isinstance(text := call.input.get(name), str):
                    yield Change(file=files[0], old=None, new=_said(text))
    for name in _PATCHES:
        if isinstance(text := call.input.get(name), str):
            yield from _patched(text)


def _said(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if _WORD.search(line))


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """What arguments call `old...` and `new...`, by object."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            texts = {str(k).lower(): v for k, v in item.items() if isinstance(v, str)}
            old = next((v for k, v in texts.items() if k.startswith("old")), None)
            new = next((v for k, v in texts.items() if k.startswith("new")), "")
            if old is not None:
                yield old, new
            stack += reversed(item.values())
        elif isinstance(item, list | tuple):
            stack += reversed(item)


def _patched(text: str) -> Iterator[Change]:
    """The sections of a patch, file by file."""
    file, is_whole = "", False
    old, new = list[str](), list[str]()
    for line in [*text.split("\n"), "*** End Patch"]:
        if line.startswith("*** "):
            if file:
                yield Change(
                    file=file, old=None if is_whole else _said("\n".join(old)), new=_said("\n".join(new))
                )
            header = _PATCHED.match(line)
            file, is_whole = (" ".join(header[2].split()), header[1] != "Update") if header else ("", False)
            old, new = [], []
        elif not line.startswith("@@"):
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])
