"""The changes that calls make to files, as far as their arguments show: writes, edits, patches, shell
scripts."""

import re
from collections.abc import Iterable, Iterator
from posixpath import join
from typing import Any, Final, cast

import attrs

from blocks import Envelope, ToolCall, tool_kind, written_paths
from render.summary._shell import Script, script_of

WORD: Final = re.compile(r"\w")
"""A line without a word character is ignored."""
_WHOLE: Final = ("content", "contents", "file_text")
_PATCHES: Final = ("input", "patch")
_PATCHED: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")


@attrs.frozen(kw_only=True)
class Change:
    """One change of a file."""

    file: str
    old: tuple[str, ...] | None
    """The lines that are replaced; None: the whole file."""
    new: tuple[str, ...]
    is_run: bool = True
    """Whether the new lines are adjacent in the file."""


def name_of(path: str) -> str:
    """The path in the form that `tool_target` gives."""
    return " ".join(path.split())


def changes_of(call: ToolCall, envelope: Envelope | None = None) -> Iterator[Change]:
    """The changes that a call makes to files, as far as its arguments show."""
    yield from _by_shell(script_of(call, envelope))
    if tool_kind(call.name, call.input, envelope) != "write":
        return
    for name in _PATCHES:
        if isinstance(text := call.input.get(name), str):
            yield from _patched(text)
    files = written_paths(call.name, call.input, envelope)
    if len(files) != 1:
        return
    file, pairs = name_of(files[0]), list(_pairs(call.input))
    for old, new in pairs:
        yield Change(file=file, old=_said(old.split("\n")), new=_said(new.split("\n")))
    whole = (text for name in _WHOLE if isinstance(text := call.input.get(name), str))
    for text in () if pairs else whole:
        yield Change(file=file, old=None, new=_said(text.split("\n")))


def _by_shell(script: Script) -> Iterator[Change]:
    """The changes that a script makes."""
    for written in script.written:
        if written.file:
            old = () if written.is_added else None
            new = _said((written.text or "").split("\n"))
            yield Change(file=name_of(written.file), old=old, new=new)
            continue
        for change in _patched(written.text or ""):
            yield attrs.evolve(change, file=join(written.folder, change.file))


def written_by(script: Script) -> Iterable[str]:
    """The files into which a script writes a known text."""
    return dict.fromkeys(change.file for change in _by_shell(script) if change.new)


def _said(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that have a word character, stripped."""
    return tuple(line.strip() for line in lines if WORD.search(line))


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """Each pair of `old...` and `new...` arguments, found in any nested object."""
    stack = [value]
    while stack:  # as in `leaves`
        item = stack.pop()
        if isinstance(item, dict):
            fields = cast("dict[Any, Any]", item)
            texts = {str(k).lower(): v for k, v in fields.items() if isinstance(v, str)}
            old = next((v for k, v in texts.items() if k.startswith("old")), None)
            new = next((v for k, v in texts.items() if k.startswith("new")), "")
            if old is not None:
                yield old, new
            stack += reversed(list(fields.values()))
        elif isinstance(item, list | tuple):
            stack += reversed(cast("list[Any]", item))


def _patched(text: str) -> Iterator[Change]:
    """The changes of a patch, one per file section."""
    file, is_whole = "", False
    old, new = list[str](), list[str]()
    for line in [*text.split("\n"), "*** End Patch"]:
        header = _PATCHED.match(line)
        if header or line.startswith("*** End Patch"):
            if file:
                gone = None if is_whole else _said(old)
                yield Change(file=file, old=gone, new=_said(new), is_run=is_whole)
            file, is_whole = (name_of(header[2]), header[1] != "Update") if header else ("", False)
            old, new = [], []
        elif not line.startswith(("@@", "*** ")):
            old += [] if line.startswith("+") else [line[1:]]
            new += [] if line.startswith("-") else [line[1:]]
