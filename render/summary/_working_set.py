"""The working set: regions of the files that are being worked on, as they are now.

What the next edits need: an edit tool wants the old text exactly, and a line that was read ten thousand tokens ago is no
longer in the request. Copies of the files are kept (see `_copy`) from what the log shows and changes; of these, the regions
are chosen that a next edit most likely touches. What the request shows anyway has no place here.

    ### src/cart.py
    118→def total(cart):
    119→    return sum(item.price for item in cart)
    …
    240→def discount(cart, rate):
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import attrgetter, itemgetter
from posixpath import basename
from typing import Final, NamedTuple

import attrs

from blocks import Region, ToolCall, ToolResult, is_sealed, label_of, text_of, tool_kind
from render.summary._commands import script_of
from render.summary._copy import Copy, Row, Stretch
from render.summary._files import LOOKING, edits_of
from render.summary._views import views_of
from render.view._group import Entry


def working_set(
    previous: Sequence[Region],
    entries: Sequence[Entry],
    since: int,
    visible: Collection[int],
    tokens_max: int,
    count: Callable[[str], int],
) -> tuple[Region, ...]:
    """The regions after these entries, within so many tokens.

    `entries` are all since the cut before the previous page, which covers those up to version `since`; `visible` are the
    versions of those that the request shows.
    """
    copies = followed(previous, entries, since)
    ranked = _ranked(copies, visible)
    characters = CHARACTERS * tokens_max
    for _ in range(TRIES):
        sizes = accumulate(len(place.row.text) + NUMBER_CHARACTERS for place in ranked)
        ranked = ranked[: sum(size <= characters for size in sizes)]
        chosen = tuple(_regions(copies, ranked))
        tokens = count(working_text(chosen)) if chosen else 0
        if tokens <= tokens_max:
            return chosen
        characters = int(characters * tokens_max / tokens * SLACK)
    return ()


def working_text(regions: Iterable[Region]) -> str:
    """The regions as they are shown; empty if there are none."""
    parts = list[str]()
    for file, those in groupby(regions, key=attrgetter("file")):
        doubt, after = 0, -1
        parts.append(f"### {file}")
        for region in those:
            lines, joined = region.text.split("\n"), region.joins or region.line == after
            if after >= 0 and not joined:
                parts.append("…")
            if region.doubt and region.doubt != doubt:
                parts.append(f"(may have changed since: [{label_of(region.doubt)}])")
            doubt = region.doubt
            width = len(str(region.line + len(lines) - 1))
            numbered = (f"{n:{width}}→{line}" for n, line in enumerate(lines, region.line))
            parts += numbered if region.line else lines
            after = region.line + len(lines) if region.line else 0
    return "\n".join(parts)


# What the next edits need. Measured on sessions whose pages were forgotten again: what was read or changed last is edited
# next, and nothing else tells more: neither that a file is named in the newest messages, nor how often it was changed.


SURROUNDINGS: Final = 20
"""Lines before and after a change that count as seen with it: about half a screen."""
OVERVIEW: Final = 60
"""A view of more lines, about a screen, is an overview: most of it is not needed, so it counts as older."""
OVERVIEW_AGE: Final = 2
"""How many times as old."""
LINES_MIN: Final = 3
"""Of a file of which not so many adjacent lines are known, nothing is shown: a search has found a word there."""
GAP_MAX: Final = 8
"""So many lines that are visible elsewhere are shown again between lines that are not, so that they can be read as one."""
CHARACTERS: Final = 4
"""Characters of a token, at most, of code with line numbers."""
NUMBER_CHARACTERS: Final = 5
TRIES: Final = 6
SLACK: Final = 0.98


class _Known(NamedTuple):
    """A row with its place: the file, and the indices of the stretch in its copy and of the row in it."""

    file: str
    stretch: int
    index: int
    row: Row


def _ranked(copies: Mapping[str, Copy], visible: Collection[int]) -> list[_Known]:
    """The rows that are not visible, the most useful first."""
    now = max((row.seen for copy in copies.values() for row in _rows(copy)), default=0)
    ranked = list[tuple[int, _Known]]()
    for name, copy in copies.items():
        if all(len(stretch.rows) < LINES_MIN for stretch in copy.stretches):
            continue
        sizes = Counter(row.seen for row in _rows(copy))
        for number, stretch in enumerate(copy.stretches):
            changed = _changed_around(stretch.rows)
            for index, (row, edited) in enumerate(zip(stretch.rows, changed, strict=True)):
                age = (now - row.seen) * (OVERVIEW_AGE if sizes[row.seen] > OVERVIEW else 1)
                if row.seen not in visible:
                    ranked.append((min(age, now - edited), _Known(name, number, index, row)))
    ranked.sort(key=itemgetter(0))
    return [known for _, known in ranked]


def _rows(copy: Copy) -> Iterator[Row]:
    return (row for stretch in copy.stretches for row in stretch.rows)


def _changed_around(rows: Sequence[Row]) -> list[int]:
    """For each row, the newest change within its surroundings; 0: none."""
    changed = [0] * len(rows)
    for index, row in enumerate(rows):
        if row.edited:
            for place in range(
                max(index - SURROUNDINGS, 0), min(index + SURROUNDINGS + 1, len(rows))
            ):
                changed[place] = max(changed[place], row.edited)
    return changed


def _regions(copies: Mapping[str, Copy], chosen: Sequence[_Known]) -> Iterator[Region]:
    """The chosen rows as regions, the file that was seen last first."""
    files: dict[str, dict[int, list[int]]] = {}
    newest: dict[str, int] = {}
    for known in chosen:
        files.setdefault(known.file, {}).setdefault(known.stretch, []).append(known.index)
        newest[known.file] = max(newest.get(known.file, 0), known.row.seen)
    for file in sorted(files, key=lambda file: (-newest[file], file)):
        copy = copies[file]
        for number, indices in sorted(files[file].items()):
            for first, last in _runs(indices):
                yield from _of_run(file, copy, copy.stretches[number], range(first, last + 1))


def _runs(indices: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of indices, across small gaps."""
    run: tuple[int, int] | None = None
    for index in sorted(indices):
        if run and index - run[1] - 1 <= GAP_MAX:
            run = run[0], index
        else:
            if run:
                yield run
            run = index, index
    if run:
        yield run


def _of_run(file: str, copy: Copy, stretch: Stretch, run: range) -> Iterator[Region]:
    """The regions of adjacent rows: one for each history."""
    for history, indices in groupby(run, key=lambda index: stretch.rows[index][1:]):
        first, *_ = places = list(indices)
        seen, edited, sources = history
        yield Region(
            file=file,
            line=stretch.line and stretch.line + first,
            text="\n".join(stretch.rows[index].text for index in places),
            seen=seen,
            edited=edited,
            doubt=copy.doubt if copy.doubt > seen else 0,
            joins=first != run.start and not stretch.line,
            sources=sources,
        )


# Following the log.


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
            _copy_of(edit.file, copies).change(known, version)
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
