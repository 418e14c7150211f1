"""The copies of all files that the log shows or changes, as they are after its newest entry.

    previous regions + entries -> copies        (`followed`; see `_copy` for what a copy is)

What a call changes and shows is read by `_files` and `_views`. Other calls may change files, too: commands that are known
to change the files they name make their copies forgotten; formatters, and commands of git that may change any file, make
them doubtful until they are seen again.
"""

import re
from collections.abc import Mapping, Sequence
from posixpath import basename
from typing import Final

import attrs

from blocks import Region, ToolCall, ToolResult, is_sealed, text_of, tool_kind
from render.summary._commands import script_of
from render.summary._copy import Copy, Row, Stretch
from render.summary._files import LOOKING, edits_of
from render.summary._views import views_of
from render.view._group import Entry


def _copy_of(name: str, copies: dict[str, Copy]) -> Copy:
    """The copy of a file; a relative path with a folder stands for the only known file that ends like it."""
    if name not in copies and "/" in name:
        names = [each for each in copies if _is_same(each, name)]
        name = names[0] if len(names) == 1 else name
    return copies.setdefault(name, Copy())


def _is_same(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return "/" in shorter and longer.endswith(f"/{shorter.removeprefix('./')}")


def followed(previous: Sequence[Region], entries: Sequence[Entry], since: int) -> dict[str, Copy]:
    """The copies after these entries, of which the previous regions cover those up to version `since`."""
    copies, calls, is_covered = dict[str, Copy](), dict[str, Entry](), True
    for entry in entries:
        if is_covered and entry.version > since:
            _recall(previous, copies)
            is_covered = False
        if isinstance(entry.block, ToolCall):
            calls[entry.pair] = entry
        elif isinstance(entry.block, ToolResult) and (call := calls.pop(entry.pair, None)):
            _follow(call, entry, copies)
    if is_covered:
        _recall(previous, copies)
    return copies


def _recall(previous: Sequence[Region], copies: dict[str, Copy]) -> None:
    """Add what the previous page showed."""
    for file in dict.fromkeys(region.file for region in previous):
        stretches, doubt = list[Stretch](), 0
        for region in previous:
            if region.file != file:
                continue
            rows = [
                Row(text, region.seen, region.edited, region.sources)
                for text in region.text.split("\n")
            ]
            if region.joins and stretches:
                stretches[-1].rows += rows
            else:
                stretches.append(Stretch(region.line, rows))
            doubt = max(doubt, region.doubt)
        copy = _copy_of(file, copies)
        copy.show(stretches, copy.changed)
        copy.doubt = max(copy.doubt, doubt)


def _follow(asked: Entry, answered: Entry, copies: dict[str, Copy]) -> None:
    """Follow one call with its result."""
    call, result = asked.source, answered.block
    if not isinstance(call, ToolCall) or not isinstance(result, ToolResult):
        return
    is_quoted = all(
        each.original is None and not is_sealed(each.block) for each in (asked, answered)
    )
    failed = result.is_error or result.envelope.outcome == "failure"
    kind, version = tool_kind(call.name, call.input, result.envelope), answered.version
    if kind not in LOOKING:
        for edit in edits_of(call, result.envelope):
            if failed and kind != "command":
                break
            known = edit if is_quoted and not failed else attrs.evolve(edit, new=None)
            _copy_of(edit.file, copies).change(known, version, asked.version)
        _doubt(call, result, copies, version)
    if is_quoted and not failed:
        for file, stretches in views_of(call, result, version):
            _copy_of(file, copies).show(stretches, asked.version)


# Calls that may change a file in a way that is not followed.


_PIECE: Final = re.compile(r"&&|\|\||[;|\n]")
_GIT: Final = r"\bgit(?:\s+-C\s+\S+|\s+-\S+)*\s+"
_CHANGING: Final = re.compile(
    r"\bg?sed\b.*?\s(?:-[a-zA-Z]*i|--in-place)|\b(?:perl|ruby)\b.*?\s-\w*i\b|\bg?awk\b.*?-i\s*inplace|\b(?:ed|ex)\s"
    rf"|{_GIT}(?:checkout|restore|stash|apply)\b|\bpatch\b"
)
"""Commands that change the files they name, or any."""
_MOVING: Final = re.compile(
    rf"\s*(?:sudo\s+)?(?:mv|cp|rm|ln|install|dd|truncate)\b|{_GIT}(?:rm|mv|clean)\b"
)
"""Commands that change the files they name, and no others."""
_PERHAPS: Final = re.compile(
    rf"{_GIT}(?:switch|pull|merge|rebase|reset\s+--hard|revert|cherry-pick|am)\b"
    r"|\b(?:gofmt|goimports|gofumpt)\b.*-w|\bprettier\b.*(?:--write|-w)\b|--fix\b|\bclang-format\b.*-i"
    r"|\b(?:ruff|cargo|go|deno|dart|mix|terraform|forge|biome|dotnet|nx)\s+(?:fmt|format)\b"
    r"|\b(?:black|isort|rustfmt|autopep8|yapf|shfmt|stylua)\b"  # write by default
    r"|\b(?:run|make|just|task|mise)\b.*\b(?:fmt|format|lint:fix)\b"
)
"""Formatters, and commands of git that may change any file."""
_HARMLESS: Final = re.compile(
    rf"{_GIT}(?:checkout\s+-[bB]|switch\s+-[cC]|stash\s+(?:list|show)|restore\s+--staged)\b|--check\b"
)
_PROGRAM: Final = re.compile(r"\b(?:python[\d.]*|node|ruby|perl|php|deno|bun|pwsh|powershell)\b")
_WRITING: Final = re.compile(r"write|open\([^)]*['\"][wax]|Set-Content|Out-File|fileinput|\bdump\(")


def _doubt(call: ToolCall, result: ToolResult, copies: Mapping[str, Copy], version: int) -> None:
    """Forget the files that a command names and changes; doubt those that it may change."""
    text, script = text_of(call), script_of(call, result.envelope)
    kind = tool_kind(call.name, call.input, result.envelope)
    if kind == "write" or script.is_all:
        return
    if kind != "command":
        _touch(text, copies, version, is_certain=False, is_any=False)
    elif _PROGRAM.search(text) and _WRITING.search(text):
        _touch(text, copies, version, is_certain=True, is_any=True)
    else:
        for piece in _PIECE.split(text):
            if _HARMLESS.search(piece):
                continue
            if _CHANGING.search(piece):
                _touch(piece, copies, version, is_certain=True, is_any=True)
            elif _MOVING.match(piece):
                _touch(piece, copies, version, is_certain=True, is_any=False)
            elif _PERHAPS.search(piece):
                _touch(piece, copies, version, is_certain=False, is_any=True)


def _touch(
    text: str, copies: Mapping[str, Copy], version: int, *, is_certain: bool, is_any: bool
) -> None:
    """Forget (if it is certain that they change) or doubt the files that a text names; if it names none, doubt any."""
    named = [copy for name, copy in copies.items() if copy.stretches and basename(name) in text]
    for copy in named:
        copy.doubt = version
        if is_certain and copy.changed < version:  # else the same call wrote it as a whole
            copy.stretches, copy.changed = [], version
    for copy in copies.values() if is_any and not named else ():
        copy.doubt = version
