"""What the agent's edits did to each file, in a few words: how often, and the most telling line of the newest.

src/color/gradient.go (4 edits, [v145]): `+ func autoShade(c Color) Color {`
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from posixpath import basename, join, normpath
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import FileChange
from render.summary._files import edits_of, name_of
from render.summary._identifiers import one_line
from render.summary._runs import Command, Run

FILES_MAX: Final = 40
LINE_CHARACTERS: Final = 100
SCRATCH: Final = ("/tmp/", "/private/tmp/", "/var/tmp/")  # noqa: S108 -- compared only
"""Folders whose files are not the work."""
WHOLE: Final = frozenset({"created", "written"})
"""How a file came to be whose text the agent wrote as a whole."""


@attrs.frozen
class _Edit:
    """One change of a file."""

    file: str
    old: Sequence[str] | None = ()
    """The replaced lines; None: the whole file."""
    new: Sequence[str] = ()
    how: str = ""
    """As `FileChange.how`, or `restored`."""
    source: str = ""
    """The file that it was before, if it was moved."""


def changes_after(before: Sequence[FileChange], run: Run) -> tuple[list[FileChange], int]:
    """The changes by file after one more call, and how many are no longer listed. A failed call changed nothing."""
    changes = {change.path: change for change in before}
    for edit in () if run.failed else chain(_made(run), *map(_by_command, run.commands)):
        old = changes.pop(_known(edit.file, changes), None) or FileChange(path=edit.file)
        if edit.source:
            moved = changes.pop(_known(edit.source, changes), None)
            how = moved.how if moved and moved.how in WHOLE else edit.how
            old = replace(moved or old, path=edit.file, how=how, seen=run.version)
            changes[edit.file] = old
            continue
        is_own = old.how in WHOLE and edit.how == "deleted"
        if not (is_own or edit.how == "restored" or edit.file.startswith(SCRATCH)):
            new = _changed(old, edit, run.version)
            changes[new.path] = new
    left = list(changes.values())[-FILES_MAX:]
    return left, len(changes) - len(left)


def _known(file: str, paths: Iterable[str]) -> str:
    """The path under which a file is listed: the same, or the only one that has the same end, as a relative path has."""
    plain = f"/{file}".replace("\\", "/")
    ends = ((path, f"/{path}".replace("\\", "/")) for path in paths)
    alike = [path for path, end in ends if plain.endswith(end) or end.endswith(plain)]
    return alike[0] if len(alike) == 1 else file


def _made(run: Run) -> Iterator[_Edit]:
    """The edits that a call's arguments show."""
    is_patch = "*** Begin Patch" in str(run.call.input)
    made = "created" if "created" in run.text[:200].lower() else "written"
    for edit in edits_of(run.call, run.result.envelope):
        is_whole, new = edit.old is None and not edit.is_added, _worded(edit.new or "")
        how = "deleted" if is_patch and not new else made
        old = None if is_whole else _worded(edit.old or "")
        yield _Edit(edit.file, old, new, how if is_whole else "")


def _worded(text: str) -> list[str]:
    """The lines that have a word, without white space around them."""
    return [line.strip() for line in text.split("\n") if re.search(r"\w", line)]


_IN_PLACE: Final = re.compile(r"-\w*i\S*|--in-place\S*")
_FILE: Final = re.compile(r"[\w./@+-]*[\w@+-]\.\w{1,10}")


def _by_command(command: Command) -> Iterator[_Edit]:
    """The edits of a command that moves, deletes, restores or edits files in place."""
    program, *others = command.words
    if program == "git" and others[:1] and others[0] in {"rm", "mv", "restore", "checkout"}:
        program, *others = others
    files = [name_of(normpath(word)) for word in others if _FILE.fullmatch(word)]
    if program == "mv" and files:
        target = name_of(normpath(others[-1]))
        for file in files if files[-1] != target else files[:-1]:
            new = target if files[-1] == target else normpath(join(target, basename(file)))
            yield _Edit(new, how=f"moved from {file}", source=file)
    elif program == "rm" or (program in {"restore", "checkout"} and "--staged" not in others):
        yield from (_Edit(file, how="deleted" if program == "rm" else "restored") for file in files)
    elif program in {"sed", "perl"} and any(map(_IN_PLACE.fullmatch, others)):
        yield from map(_Edit, files)


def _changed(change: FileChange, edit: _Edit, version: int) -> FileChange:
    """The change of a file with one more edit."""
    path, edits = max(change.path, edit.file, key=len), change.edits + 1
    if edit.how == "deleted":
        return FileChange(path=path, edits=edits, seen=version, how="deleted")
    is_new = change.how == "deleted" or (change.how == "" and change.edits == 0)
    how = edit.how if is_new or edit.how == "created" else change.how or edit.how
    line = _difference(edit) or change.line
    return replace(change, path=path, edits=edits, seen=version, how=how, line=line)


_AROUND: Final = re.compile(
    r"(?:import|from|use|using|require|include|package|end|else)\b.*|#\s*include\b.*|.*\brequire\(.*"
    r"|export\s*[{*].*|['\"`][\w./@:-]+['\"`][,;]?|[\w$]{1,2}\W*"
)
"""A line that says little of what an edit is about: an import, a part of a block."""


def _difference(edit: _Edit) -> str:
    """What an edit replaced in its most telling line: `old → new` where both are short, else the line that
    came (`+ x`) or went (`- x`); nothing for a whole file."""
    if edit.old is None:
        return ""
    sides = ([x for x in edit.old if x not in edit.new], [x for x in edit.new if x not in edit.old])
    old, new = (min(lines, key=lambda x: bool(_AROUND.fullmatch(x)), default="") for lines in sides)
    if old and new and len(old) + len(new) > LINE_CHARACTERS:
        old = ""
    line = f"{old} → {new}" if old and new else f"+ {new}" if new else f"- {old}" if old else ""
    return one_line(line, LINE_CHARACTERS)
