"""Files in folded texts: which of their lines are still current, and their line numbers.

Reads, writes, edits and patches of a file are followed in log order; newer ones win:

    read      its lines are current; earlier copies, and earlier lines with the same numbers, are stale
    edit      its new text is current, what it replaced is stale
    write     its text is current, everything before is stale

Lines are compared by their text, without surrounding white space and viewer numbers. If a file has the same
line twice, both may become stale together; a line that an edit removed is never shown as current. Shell
commands are followed if they plainly show or write a file (see `_commands`). Other changes to a file are not
known until it is read again.

A change from outside is detected by the agent's own lines that no call has changed since. If a later view of the file
has the first and last of them once each, but other lines between them, then a command, another program or a person
changed the file. This is only reported if it is certain: both lines are there, the view has no gap, and no call in
between named the file without being followed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from posixpath import basename, join
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import Envelope, ToolCall, ToolResult, text_of, tool_kind, tool_target, written_paths
from render.summary._commands import ALL, WENT_WELL, Script, Shown, script_of, status_of
from render.summary._copy import Edit
from render.summary._identifiers import is_cut, is_output
from render.summary._reading import LINE_CHARACTERS, Line, Source
from render.view._group import Entry

LOOKING: Final = frozenset({"read", "search", "web"})
"""Kinds of calls that change no file."""
_FIRST: Final = ("offset", "start_line", "line_start", "view_range")
_Place: TypeAlias = tuple[Source, int, int]
"""One sighting of a line: its source, its offset there, and its number in the file (0: not known)."""


@attrs.frozen(kw_only=True)
class Change:
    """One change of a file."""

    file: str
    old: tuple[str, ...] | None
    """The lines that are replaced; None: the whole file."""
    new: tuple[str, ...]
    is_run: bool = True
    """Whether the new lines are adjacent in the file."""


@attrs.frozen
class Run:
    """Adjacent lines that the agent wrote."""

    done: int
    """Version of the result that confirmed the write."""
    lines: tuple[str, ...]


@attrs.define(eq=False)
class _File:
    """The sightings of each line of one file."""

    lines: dict[str, list[_Place]] = attrs.field(factory=dict[str, list[_Place]])
    """By the text of the line, oldest first."""
    numbers: dict[int, _Place] = attrs.field(factory=dict[int, _Place])
    fragments: set[str] = attrs.field(factory=set[str])
    """Lines that may be only a part of a real line, because an edit can begin and end within a line."""
    runs: list[Run] = attrs.field(factory=list[Run])
    """Adjacent lines that the agent wrote and has not changed since."""

    def recall(self, source: Source, held: set[str] | None) -> None:
        """Record the current lines of a source (None: all but its stale ones)."""
        lines = lines_in(source)
        if held is not None:
            lines = [line for line in lines if line[2] in held]
        elif source.stale:
            lines = [line for line in lines if line[0] not in source.stale]
        self.add(source, lines)
        if held is None and source.is_call:
            self.fragments.update(text for _, _, text in lines)

    def read(self, source: Source, lines: Sequence[Line], since: int) -> None:
        """Record lines that a read showed, which was asked for at version `since`; earlier copies become
        stale."""
        before = (run for run in self.runs if run.done < since)
        source.is_changed = any(contradicts(source.text, lines, run) for run in before)
        for _, number, text in lines:
            if place := self.numbers.pop(number, None):
                shown, offset, _ = place
                shown.give_up(offset)
            if len(text) >= TELLING:
                self._give_up(text)
        self.add(source, lines)

    def add(self, source: Source, lines: Iterable[Line]) -> None:
        for start, number, text in lines:
            place = source, start, number
            self.lines.setdefault(text, []).append(place)
            if number:
                self.numbers[number] = place

    def change(self, change: Change) -> int:
        """Mark the lines that a change replaces as stale; returns the line number of the change, 0 if not
        known."""
        if change.old is None:
            gone, known = list(self.lines), set[str]()
        else:
            old, new = dict.fromkeys(change.old), set(change.new)  # each line once, however often
            gone = [text for text in old if text not in new]
            gone += [*self._longer(change.old), *self._shorter(gone)]
            known = {*gone, *old}
            if not all(map(self._is_known, (*change.old[:1], *change.old[-1:]))):
                self.fragments.update(change.new[:1], change.new[-1:])
        places = (place for text in known for place in self.lines.get(text, ()))
        numbers = [number for _, _, number in places if number]
        for text in gone:
            self._give_up(text)
        return min(numbers, default=0) if known else 1

    def _give_up(self, text: str) -> None:
        for source, start, _ in self.lines.pop(text, ()):
            source.give_up(start)

    def _longer(self, old: Sequence[str]) -> Iterator[str]:
        """Known lines that contain the first or last replaced line only as a part."""
        if not old:
            return
        first, last = old[0], old[-1]
        if not self._is_known(first):
            yield from (
                text
                for text in self.lines
                if text.endswith(first) or (len(old) == 1 and first in text)
            )
        if not self._is_known(last) and len(old) > 1:
            yield from (text for text in self.lines if text.startswith(last))

    def _is_known(self, text: str) -> bool:
        """Whether the text is known as a whole line."""
        return text in self.lines and text not in self.fragments

    def _shorter(self, gone: Sequence[str]) -> Iterator[str]:
        """Known parts of the replaced lines: parts written by an edit, and pieces of very long lines."""
        replaced = "\n".join(gone)  # a part contains no line end
        yield from (part for part in self.fragments if part in replaced)
        if long := "\n".join(text for text in gone if len(text) > LINE_CHARACTERS):
            yield from (part for part in self.lines if part in long)


@attrs.define(eq=False)
class _Files:
    """The files that the texts show or change, by name."""

    read: dict[str, _File] = attrs.field(factory=dict[str, _File])
    _waiting: dict[str, list[tuple[Source, set[str] | None]]] = attrs.field(
        factory=dict[str, list[tuple[Source, set[str] | None]]]
    )
    """Arguments of `_File.recall`. A source is read only when its file is named again, because most files are
    named once."""

    def wait(self, name: str, source: Source, held: set[str] | None) -> None:
        """Add a source to a file."""
        self._waiting.setdefault(name, []).append((source, held))

    def show(self, name: str, source: Source, since: int) -> None:
        """Record a view of a file that was asked for at version `since`; it waits if the file is new."""
        if name in self.read or name in self._waiting:
            self.file(name).read(source, lines_in(source), since)
        else:
            self.wait(name, source, None)

    def file(self, name: str) -> _File:
        """The file, after the sources that wait for it have been read."""
        file = self.read.get(name)
        if file is None:
            file = self.read[name] = _File()
        for source, held in self._waiting.pop(name, ()):
            file.recall(source, held)
        return file


def follow(earlier: Iterable[Source], folded: Sequence[tuple[Entry, Sequence[Source]]]) -> None:
    """Mark the stale lines of each source, and set the file it belongs to.

    `earlier` are the excerpts of the previous index, in log order.
    """
    files = _Files()
    for source in earlier:
        if source.file:
            files.wait(source.file, source, None)
    calls = {e.pair: (e.version, e.block) for e, _ in folded if isinstance(e.block, ToolCall)}
    done = {e.pair: (e.version, e.block) for e, _ in folded if isinstance(e.block, ToolResult)}
    for entry, sources in folded:
        asked, answer = calls.get(entry.pair), done.get(entry.pair)
        if asked is None:
            continue
        (called, call), (answered, result) = asked, answer or (0, None)
        if entry.block is call:
            _forget(call, result, files.read)
        if result is None or _failed(result):
            continue
        if entry.block is call:
            _apply(list(changes_of(call, result.envelope)), sources, files, answered)
        else:
            _show(call, result, sources, files, called)


def _forget(call: ToolCall, result: ToolResult | None, files: Mapping[str, _File]) -> None:
    """Forget what the agent wrote to the files that a call names, if the call's effect cannot be followed."""
    known, text = result.envelope if result else None, text_of(call)
    named = {name: file for name, file in files.items() if file.runs and basename(name) in text}
    if not named or tool_kind(call.name, call.input, known) in LOOKING:
        return
    if not script_of(call, known).is_all:
        followed = {change.file for change in changes_of(call, known) if change.is_run}
        for name in named.keys() - followed:
            named[name].runs.clear()


def _failed(result: ToolResult) -> bool:
    return result.is_error or result.envelope.outcome == "failure"


def _apply(changes: Sequence[Change], sources: Iterable[Source], files: _Files, done: int) -> None:
    """Apply the changes of a call; if they are all in one file, its new lines are current there."""
    numbers = {change.file: list[int]() for change in changes}
    for change in changes:
        file = files.file(change.file)
        numbers[change.file].append(file.change(change))
        file.runs = runs_after(file.runs, change, done)
    names = {change.file for change in changes if change.new or change.old}
    if len(names) != 1:
        return
    (name,) = names
    line = min(filter(None, numbers[name]), default=0)
    new = _left(change for change in changes if change.file == name)
    for source in sources:
        source.file, source.line = name, line
        files.wait(name, source, new)


def _left(changes: Iterable[Change]) -> set[str]:
    """The lines that consecutive changes of one file wrote and did not replace again."""
    left = set[str]()
    for change in changes:
        left.difference_update(left if change.old is None else change.old)
        left.update(change.new)
    return left


def _show(
    call: ToolCall,
    result: ToolResult,
    sources: Iterable[Source],
    files: _Files,
    since: int,
) -> None:
    """Record the file lines that a result shows: a view of a file, or the numbered lines after a change."""
    shown = shown_by(call, result)
    if shown is None:
        return
    line = shown.line
    is_change = tool_kind(call.name, call.input, result.envelope) == "write"
    for source in sources:
        if not is_output(source.text) or source.text.rstrip().count("\n") >= shown.lines:
            continue
        source.line, line = line, 0  # only the first part of a divided text
        if is_change and not any(number for _, number, _ in lines_in(source)):
            continue  # a message about the change
        if WORD.search(source.text):
            source.file = name_of(shown.file)
            files.show(source.file, source, since)


def shown_by(call: ToolCall, result: ToolResult) -> Shown | None:
    """The part of a file that a result shows; None if it does not plainly show one."""
    kind = tool_kind(call.name, call.input, result.envelope)
    names: Sequence[str] = ()
    line, lines = 0, ALL
    if kind == "read":
        names = (tool_target(call.input, result.envelope),)
        line = _first_line(call.input)
    elif kind == "write":
        names = written_paths(call.name, call.input, result.envelope)
    elif shown := script_of(call, result.envelope).shown:
        well = status_of(result) in WENT_WELL
        names, line, lines = (shown.file,) if well else (), shown.line, shown.lines
    if len(names) != 1 or not names[0]:
        return None
    return Shown(names[0], 0 if is_cut(text_of(result)) else line, lines)


def _first_line(arguments: Mapping[str, Any]) -> int:
    for name in _FIRST:
        value = arguments.get(name)
        if isinstance(value, list) and value:
            value = cast("list[Any]", value)[0]
        if isinstance(value, int) and value > 0:
            return value
    return 1


# The changes that calls make, as far as their arguments show: writes, edits, patches, shell scripts.


WORD: Final = re.compile(r"\w")
"""A line without a word character is ignored."""
_WHOLE: Final = ("content", "contents", "file_text")
_PATCHES: Final = ("input", "patch", "patchText")
"""Codex; opencode."""
_ALL: Final = ("replace_all", "replaceall", "allow_multiple")
"""Claude Code; opencode; Gemini CLI."""
_MOVED: Final = re.compile(r"\*\*\* Move to: (.*\S)")
_UNIFIED_OLD: Final = re.compile(r"--- (?:a/|/dev/null)")
_UNIFIED_NEW: Final = re.compile(r"\+\+\+ (?:b/)?([^\t]*[^\s])")
_PATCHED: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")


def name_of(path: str) -> str:
    """The path in the form that `tool_target` gives."""
    return " ".join(path.split())


def changes_of(call: ToolCall, envelope: Envelope | None = None) -> Iterator[Change]:
    """The changes that a call makes to files, in lines without white space around them."""
    for edit in edits_of(call, envelope):
        old = () if edit.is_added else None if edit.old is None else _said(edit.old.split("\n"))
        new = _said((edit.new or "").split("\n"))
        yield Change(file=edit.file, old=old, new=new)


def edits_of(call: ToolCall, envelope: Envelope | None = None) -> Iterator[Edit]:
    """The changes that a call makes to files, as far as its arguments show."""
    yield from _by_shell(script_of(call, envelope))
    if tool_kind(call.name, call.input, envelope) != "write":
        return
    patches = [text for name in _PATCHES if isinstance(text := call.input.get(name), str)]
    patched = [edit for text in patches for edit in _patched(text)]
    yield from patched
    files = list(map(name_of, written_paths(call.name, call.input, envelope)))
    pairs = list(_pairs(call.input))
    if len(files) != 1 or patched:
        known = {edit.file for edit in patched}
        yield from (Edit(file=file, old=None, new=None) for file in files if file not in known)
        return
    for old, new, is_all in pairs:
        yield Edit(file=files[0], old=old or None, new=new, is_all=is_all)
    whole = [text for name in _WHOLE if isinstance(text := call.input.get(name), str)]
    for text in () if pairs else whole or [None]:
        yield Edit(file=files[0], old=None, new=text)


def _by_shell(script: Script) -> Iterator[Edit]:
    """The changes that a script makes."""
    for written in script.written:
        if written.file:
            yield Edit(
                file=name_of(written.file),
                old=None,
                new=written.text,
                is_added=written.is_added,
                is_part=written.is_part,
            )
            continue
        for edit in _patched(written.text or ""):
            yield attrs.evolve(edit, file=join(written.folder, edit.file))


def written_by(script: Script) -> Iterable[str]:
    """The files into which a script writes a known text."""
    return dict.fromkeys(
        edit.file for edit in _by_shell(script) if _said((edit.new or "").split("\n"))
    )


def _said(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that have a word character, stripped."""
    return tuple(line.strip() for line in lines if WORD.search(line))


def _pairs(value: Any) -> Iterator[tuple[str, str, bool]]:
    """Each pair of `old...` and `new...` arguments, found in any nested object, and whether all occurrences are meant."""
    stack = [value]
    while stack:  # as in `leaves`
        item = stack.pop()
        if isinstance(item, dict):
            fields = {str(k).lower(): v for k, v in cast("dict[Any, Any]", item).items()}
            texts = {k: v for k, v in fields.items() if isinstance(v, str)}
            old = next((v for k, v in texts.items() if k.startswith("old")), None)
            new = next((v for k, v in texts.items() if k.startswith("new")), "")
            if old is not None:
                yield old, new, any(fields.get(name) for name in _ALL)
            stack += reversed(list(fields.values()))
        elif isinstance(item, list | tuple):
            stack += reversed(cast("list[Any]", item))


def _patched(text: str) -> Iterator[Edit]:
    """The changes of a patch, one for each hunk; of a file that is added or deleted, one."""
    file, is_whole = "", False
    old, new = list[str](), list[str]()

    def hunk() -> Iterator[Edit]:
        if file and (old or new or is_whole):
            gone = None if is_whole else "".join(f"{line}\n" for line in old)
            yield Edit(file=file, old=gone, new="".join(f"{line}\n" for line in new), is_lines=True)

    for line in text.removesuffix("\n").split("\n"):
        header = _PATCHED.match(line)
        if header or line.startswith(("@@", "*** End Patch")) or _UNIFIED_OLD.match(line):
            yield from hunk()
            old, new = [], []
        if header:
            file, is_whole = name_of(header[2]), header[1] != "Update"
        elif found := _MOVED.match(line):
            yield Edit(file=file, old=None, new="")
            file = name_of(found[1])
        elif found := _UNIFIED_NEW.match(line):
            file, is_whole, old, new = name_of(found[1]), False, [], []
        elif line.startswith("*** End Patch") or _UNIFIED_OLD.match(line):
            file = ""
        elif file and not line.startswith(("@@", "*** ", "\\ ")):
            old += [] if line.startswith("+") else [line[1:]]
            new += [] if line.startswith("-") else [line[1:]]
    yield from hunk()


# The lines of a file that a text shows, and their numbers. Tools that show files often put a line number before each
# line: `   12→total = 0`. It is not part of the line.


_NUMBER: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t|:(?: |$)|\|)")


def without_number(text: str) -> str:
    """A line without the number that a viewer put before it."""
    return _NUMBER.sub("", text, count=1)


def lines_in(source: Source) -> Sequence[Line]:
    """The lines of a source as they are in the file; lines without a word character are left out.

    The result is cached per text, because the next compaction needs most texts again.
    """
    place, known = (source.is_call, source.line), source.reading.in_file
    if known is None or known[0] != place:
        known = source.reading.in_file = place, list(_looked_for(source))
    return known[1]


def _looked_for(source: Source) -> Iterator[Line]:
    texts = source.text.split("\n")
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    numbers = [] if source.is_call else numbers_in(texts, source.line)
    if not any(numbers):
        shift = source.line if not source.is_call else 0
        for place, text in enumerate(texts):
            plain = text[1:] if source.is_call and text.startswith("+") else text
            if WORD.search(plain):
                yield starts[place], shift and shift + place, plain.strip()
        return
    for place, number in enumerate(numbers):
        plain = _NUMBER.sub("", texts[place], count=1) if number else texts[place]
        if WORD.search(plain) and (number or not place):  # an excerpt may begin within a line
            yield starts[place], number or source.line, plain.strip()


def line_at(source: Source, position: int) -> int:
    """The line number in the file for a position in the text; 0 if it is not known."""
    if not source.file or source.is_call:
        return source.line
    start = source.text.rfind("\n", 0, position) + 1
    if shown := _NUMBER.match(source.text, start):
        return int(shown[1])
    return source.line and source.line + source.text.count("\n", 0, position)


def numbers_in(texts: Sequence[str], first: int) -> list[int]:
    """The line number that the text shows before each line; 0 for a line without one.

    A number counts only if it is `first`, or continues the numbering of the line before or after: other numbers at
    the start of a line belong to the line.
    """
    found = [_NUMBER.match(text) for text in texts]
    numbers = [int(each[1]) if each else -1 for each in found]
    around = zip([-1, *numbers], numbers, [*numbers[1:], -1], strict=False)
    return [
        number if number > 0 and number in {first, before + 1, after - 1} else 0
        for before, number, after in around
    ]


# Changes from outside.


TELLING: Final = 20
"""A line of this many characters hardly occurs twice in a file."""
RUN_MIN: Final = 3
"""The least lines of a run, so that there is one between the first and the last."""
RUNS_MAX: Final = 50
"""The most runs kept per file, the newest."""
COMPARED: Final = 200
"""Characters of a line that are compared, because viewers cut long lines."""


def runs_after(runs: Sequence[Run], change: Change, done: int) -> list[Run]:
    """The agent's runs that are unchanged after one more change, plus the new run."""
    left = [run for run in runs if change.old and not _is_touched(run, change.old)]
    if change.is_run and len(change.new) >= RUN_MIN:
        left.append(Run(done, change.new))
    return left[-RUNS_MAX:]


def _is_touched(run: Run, old: Sequence[str]) -> bool:
    text = "\n".join(run.lines)
    return any(line in text for line in old)


def contradicts(text: str, lines: Sequence[Line], run: Run) -> bool:
    """Whether a view of a file shows other lines where the agent wrote this run."""
    first, last = run.lines[0], run.lines[-1]
    shown = [line for _, _, line in lines]
    if min(len(first), len(last)) < TELLING or shown.count(first) != 1 or shown.count(last) != 1:
        return False
    begin, end = shown.index(first), shown.index(last)
    (start, number, _), (stop, number_last, _) = lines[begin], lines[end]
    is_whole = number > 0 and number_last - number == text.count("\n", start, stop)
    if begin >= end or not is_whole:
        return False
    return list(map(_compared, shown[begin : end + 1])) != list(map(_compared, run.lines))


def _compared(line: str) -> str:
    return " ".join(line.split())[:COMPARED]
