"""What calls show of files and do to them, as far as their arguments and results say it.

    edits_of(run)    the changes: a write, an edit, a patch, a shell script
    view_of(run)     the lines that are shown, with their numbers: a read, `cat f`, `sed -n 10,20p f`

Lines whose number is not known are not shown, nor is a line that a viewer has cut.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from posixpath import join
from typing import Any, Final, NamedTuple, cast

import attrs

from blocks import written_paths
from render.summary._calls import WENT_WELL, Run, is_cut, output_of
from render.summary._shell import ALL, Shown


class Row(NamedTuple):
    """One line of a file."""

    text: str
    seen: int
    """Version of the block that showed or wrote it last."""
    edited: int = 0
    """Version of the last change of it; 0: none that is known."""
    sources: tuple[int, ...] = ()
    """Versions of the other blocks that parts of it come from."""


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

    def numbered(self) -> Iterable[tuple[int, Row]]:
        """The lines with their numbers; none if these are not known."""
        return enumerate(self.rows, self.line) if self.line else ()


@attrs.frozen(kw_only=True)
class Edit:
    """A change of a file: one text instead of another."""

    file: str
    old: str | None
    """What is replaced, exactly; None: the whole file, or with `is_added` nothing."""
    new: str | None
    """None: it is not known as a whole."""
    is_all: bool = False
    """Whether every occurrence is replaced, not the only one."""
    is_lines: bool = False
    """Whether the texts are whole lines, each with its line end, and the place is the first that matches, as in a patch."""
    is_added: bool = False
    """Whether the new text is added at the end of the file."""


def name_of(path: str) -> str:
    """The path in the form that `tool_target` gives."""
    return " ".join(path.split())


_FOLDER: Final = re.compile(r"[^\\/]*[\\/]")


def shared_folder(paths: Iterable[str]) -> str:
    """The folder that makes the paths shortest, if it is left out of them; empty if there is none."""
    folders = Counter(folder for path in paths for folder in accumulate(_FOLDER.findall(path)))
    shared = [f for f, files in folders.items() if files > 1 and re.match(r"/.|[A-Za-z]:", f)]
    return max(shared, key=lambda folder: len(folder) * folders[folder], default="")


# Changes: writes, edits, patches, shell scripts.


_WHOLE: Final = ("content", "contents", "file_text")
_PATCHES: Final = ("input", "patch", "patchText")
"""Codex; opencode."""
_ALL: Final = ("replace_all", "replaceall", "allow_multiple")
"""Claude Code; opencode; Gemini CLI."""
_MOVED: Final = re.compile(r"\*\*\* Move to: (.*\S)")
_UNIFIED_OLD: Final = re.compile(r"--- (?:a/|/dev/null)")
_UNIFIED_NEW: Final = re.compile(r"\+\+\+ (?:b/)?([^\t]*[^\s])")
_PATCHED: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)")


def edits_of(run: Run) -> Iterator[Edit]:
    """The changes that a call makes to files, as far as its arguments show."""
    call = run.call
    for each in run.script.written:
        if each.file:
            file, new, is_added = name_of(each.file), each.text, each.is_added
            yield Edit(file=file, old=None, new=new, is_added=is_added)
        else:
            for edit in _patched(each.text or ""):
                yield attrs.evolve(edit, file=join(each.folder, edit.file))
    if run.kind != "write":
        return
    patches = [text for name in _PATCHES if isinstance(text := call.input.get(name), str)]
    patched = [edit for text in patches for edit in _patched(text)]
    yield from patched
    files = list(map(name_of, written_paths(call.name, call.input, run.envelope)))
    pairs = list(_pairs(call.input))
    if len(files) != 1 or patched:
        known = {edit.file for edit in patched}
        yield from (Edit(file=file, old=None, new=None) for file in files if file not in known)
        return
    for old, new, is_all in pairs:
        yield Edit(file=files[0], old=old or None, new=new, is_all=is_all)
    whole: list[str | None] = [t for name in _WHOLE if isinstance(t := call.input.get(name), str)]
    for text in () if pairs else whole or [None]:
        yield Edit(file=files[0], old=None, new=text)


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


# Views: the lines that results show.


def shown_by(run: Run) -> Shown | None:
    """The part of a file that a result shows; None if it does not plainly show one."""
    names: Sequence[str] = ()
    line, lines = 0, ALL
    if run.kind == "read":
        names = (run.target,)
        line, _ = lines_asked(run.call.input)
    elif run.kind == "write":
        names = written_paths(run.call.name, run.call.input, run.envelope)
    elif len(parts := run.script.parts) == 1:
        names = (parts[0].file,) if run.status in WENT_WELL else ()
        line, lines = parts[0].line, parts[0].lines
    if len(names) != 1 or not names[0]:
        return None
    return Shown(names[0], 0 if is_cut(run.whole) else line, lines)


def lines_asked(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """The first and the last line that a reading tool was asked for; 0: up to the end."""

    def number(*names: str) -> int:
        values = (arguments.get(name) for name in names)
        return next((v for v in values if type(v) is int and 0 < v < ALL), 0)

    match arguments.get("view_range"):
        case [int(first), int(last), *_] if first > 0:
            return first, max(last, 0)
        case _:
            first = max(number("offset", "start_line", "line_start", "startLine"), 1)
            limit = number("limit", "line_count", "num_lines")
            last = number("end_line", "line_end", "endLine") or (limit and first + limit - 1)
            return first, last


_NUMBER: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t|:(?: |$)|\|)")
"""The number that a viewer puts before a line: `   12→total = 0`."""


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


def without_number(text: str) -> str:
    """A line without the number that a viewer put before it."""
    return _NUMBER.sub("", text, count=1)


_NOTE: Final = re.compile(r"\s*\[[^\n]*\]|</?[\w-]+>|\.\.\. \(\d+ more lines?\b.*")
"""What a viewer adds as a last line: how many lines follow (pi), a tag (opencode, mini-swe-agent)."""
_CUT_CHARACTERS: Final = 400
"""A line of so many characters that ends like a cut one is not taken as whole: viewers cut at 2,000
characters (Claude Code, opencode, Gemini CLI)."""
_CUT: Final = re.compile(r"(?:…|\.\.\.)\s?(?:[\[(][^\])]*[\])])?$|\[[^\]]*truncated[^\]]*\]$")


def view_of(run: Run) -> tuple[str, list[Stretch]] | None:
    """The file of which a result shows lines, with these."""
    shown, text = shown_by(run), run.whole
    if shown is None:
        return None
    start, end = output_of(text)
    texts = text[start:end].rstrip().split("\n")
    numbers, rows = numbers_in(texts, shown.line), list[tuple[int, str]]()
    if any(numbers):
        rows = [(n, without_number(each)) for n, each in zip(numbers, texts, strict=True) if n]
    elif shown.line and run.kind != "write" and not any(map(is_cut, texts)):  # else a message
        if _NOTE.fullmatch(texts[-1]):
            texts = "\n".join(texts[:-1]).rstrip().split("\n")
        is_short = shown.line > 1 and len(texts) < shown.lines < ALL  # without blank lines before?
        is_known = any(texts) and not is_short and len(texts) <= shown.lines
        rows = list(enumerate(texts, shown.line)) if is_known else []
    rows = [(n, each) for n, each in rows if len(each) < _CUT_CHARACTERS or not _CUT.search(each)]
    return name_of(shown.file), joined((n, Row(each, run.version)) for n, each in rows)


def joined(rows: Iterable[tuple[int, Row]]) -> list[Stretch]:
    """Rows with their numbers, in order, as stretches."""
    stretches, after = list[Stretch](), 0
    for number, row in rows:
        if stretches and number == after:
            stretches[-1].rows.append(row)
        else:
            stretches.append(Stretch(number, [row]))
        after = number + 1
    return stretches
