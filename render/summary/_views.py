"""The lines of files that a result shows: of a read, a command that prints files, a search.

| call | shows |
|---|---|
| a read, with or without numbers | the lines from its offset on |
| `cat f`, `sed -n 10,20p f`, `nl -ba f \\| sed -n ...` | the lines that they print (see `_commands`) |
| `sed -n 10,20p f; echo ---; sed -n 5,9p g` | those of each, if the output has as many lines as they print |
| a search with numbers: `f:12:text`, `f-13-text`, or of one file `12:text`, `13-text` | these lines |
| `grep -A 9 def f` | runs of lines whose numbers are not known |

A line that a viewer has cut is not shown, and nothing that is not certainly a line of the file.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from blocks import ToolCall, ToolResult, text_of, tool_kind
from render.summary._commands import ALL, WENT_WELL, Shown, searched_file, shown_parts, status_of
from render.summary._copy import Row, Stretch
from render.summary._files import name_of, numbers_in, shown_by, without_number
from render.summary._identifiers import is_cut, output_of

RUN_MIN: Final = 3
"""The fewest lines that are taken of a search without numbers."""
_FOUND: Final = re.compile(
    r"(?P<file>[^\s:][^:\n]*?\.\w+)(?P<sep>[:-])(?P<line>\d{1,7})(?P=sep)(?P<text>.*)"
)
_FOUND_IN_ONE: Final = re.compile(r"(?P<line>\d{1,7})[:-](?P<text>.*)")
_NOTE: Final = re.compile(r"\s*\[[^\n]*\]\s*|</?[\w-]+>\s*|\.\.\. \(\d+ more lines?\b.*")
"""What a viewer adds as a last line: how many lines follow (pi), a tag (opencode, mini-swe-agent)."""
_BLANK: Final = re.compile(r"\s*")
HEAD_LINES: Final = 4
"""Lines before and with the first one of the file, in opencode."""
CUT_CHARACTERS: Final = 400
"""A line of so many characters that ends like a cut one is not taken as whole: viewers cut at 500 (ripgrep in Claude Code)
or 2,000 characters (Claude Code, opencode, Gemini CLI)."""
_CUT: Final = re.compile(r"(?:…|\.\.\.)\s?(?:[\[(][^\])]*[\])])?$|\[[^\]]*truncated[^\]]*\]$")
_OMITTED: Final = "[Omitted long "
"""Stands for a long line in the output of ripgrep."""


def views_of(
    call: ToolCall, result: ToolResult, version: int
) -> Iterator[tuple[str, list[Stretch]]]:
    """The files of which a result shows lines, with these; `version` is that of the result."""
    text = text_of(result)
    start, end = output_of(text)
    output, kind = text[start:end], tool_kind(call.name, call.input, result.envelope)
    if shown := shown_by(call, result):
        yield name_of(shown.file), viewed(output, shown, version, is_change=kind == "write")
    elif kind == "search":
        path = call.input.get("path")
        yield from _found(
            output, path if isinstance(path, str) and "." in path[-9:] else "", version
        )
    elif kind == "command" and status_of(result) in WENT_WELL and not is_cut(output):
        if parts := shown_parts(call, result.envelope):
            yield from _divided(output, parts, version)
        elif (file := searched_file(call, result.envelope)) is not None:
            yield from _found(output, file, version)


def viewed(output: str, shown: Shown, version: int, *, is_change: bool = False) -> list[Stretch]:
    """The lines of one file that an output shows."""
    texts = output.split("\n")
    texts[:HEAD_LINES] = [text.removeprefix("<content>") for text in texts[:HEAD_LINES]]
    numbers = numbers_in(texts, shown.line)
    if any(numbers):
        pairs = zip(numbers, texts, strict=True)
        return _stretches([(n, without_number(text)) for n, text in pairs if n], version)
    if is_change:
        return []  # a message about the change
    cut = next((index for index, text in enumerate(texts) if is_cut(text)), len(texts))
    is_whole, texts = cut == len(texts), texts[:cut]
    if is_whole:
        texts = _without_end(_without_end(texts, _BLANK), _NOTE)
    if len(texts) > shown.lines:
        return []
    is_short = shown.line > 1 and len(texts) < shown.lines < ALL
    line = 0 if is_short else shown.line  # blank lines at the beginning may have been left out
    return _stretches(list(enumerate(texts, line or 1)), version, is_numbered=line > 0)


def _without_end(texts: list[str], ending: re.Pattern[str]) -> list[str]:
    """The lines without what a viewer adds at the end, and without blank ones before it."""
    if texts and ending.fullmatch(texts[-1]):
        del texts[-1]
        while texts and not texts[-1].strip():
            del texts[-1]
    return texts


def _divided(
    output: str, parts: Sequence[Shown | str], version: int
) -> Iterator[tuple[str, list[Stretch]]]:
    """The lines of an output that several commands have printed one after the other."""
    texts = output.removesuffix("\n").split("\n")
    if len(texts) != sum(1 if isinstance(part, str) else part.lines for part in parts):
        return
    start = 0
    for part in parts:
        if isinstance(part, str):
            start += 1
            continue
        rows = list(enumerate(texts[start : start + part.lines], part.line))
        start += part.lines
        yield name_of(part.file), _stretches(rows, version)


def _found(output: str, file: str, version: int) -> Iterator[tuple[str, list[Stretch]]]:
    """The lines that a search has found, with those around them; `file`: the only one that was searched."""
    # Claude Code takes all before the first colon of a line for its path, and puts that in order: `//` becomes `/`.
    rows: dict[str, list[tuple[int, str]]] = {}
    texts = output.split("\n")
    for text in texts:
        found = _FOUND.fullmatch(text)
        if found and not (
            found["sep"] == "-" and "/" in found["text"].partition(":")[0] and ":" in text
        ):
            rows.setdefault(found["file"], []).append((int(found["line"]), found["text"]))
        elif not found and file and (found := _FOUND_IN_ONE.fullmatch(text)):
            rows.setdefault(file, []).append((int(found["line"]), found["text"]))
    for name, numbered in rows.items():
        yield name_of(name), _stretches(numbered, version)
    if file and not rows:
        runs = [run.split("\n") for run in output.strip("\n").split("\n--\n")]
        stretches = [
            Stretch(0, [Row(text, version) for text in run]) for run in runs if len(run) >= RUN_MIN
        ]
        yield name_of(file), stretches


def _stretches(
    rows: Sequence[tuple[int, str]], version: int, *, is_numbered: bool = True
) -> list[Stretch]:
    """Stretches of numbered lines, without those that a viewer has cut."""
    stretches, after = list[Stretch](), 0
    for number, text in rows:
        if text.startswith(_OMITTED) or (len(text) >= CUT_CHARACTERS and _CUT.search(text)):
            continue
        if stretches and number == after:
            stretches[-1].rows.append(Row(text, version))
        else:
            stretches.append(Stretch(number if is_numbered else 0, [Row(text, version)]))
        after = number + 1
    return stretches
