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
from posixpath import join
from typing import Any, Final, cast

import attrs

from blocks import Envelope, ToolCall, ToolResult, text_of, tool_kind, tool_target, written_paths
from render.summary._commands import ALL, WENT_WELL, Script, Shown, script_of, status_of
from render.summary._copy import Edit
from render.summary._identifiers import is_cut

LOOKING: Final = frozenset({"read", "search", "web"})
"""Kinds of calls that change no file."""
_FIRST: Final = ("offset", "start_line", "line_start", "view_range")


@attrs.frozen(kw_only=True)
class Change:
    """One change of a file."""

    file: str
    old: tuple[str, ...] | None
    """The lines that are replaced; None: the whole file."""
    new: tuple[str, ...]
    is_run: bool = True
    """Whether the new lines are adjacent in the file."""


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
