"""Where a piece of a text stands: the first line of its function and class, its table's heading, its section, its file in
a diff.

    class Ledger:                                   the frame of ...
        def total(self):
            ...
            amount += entry.paid                    ... this line
"""

import re
from collections.abc import Sequence
from typing import Final

from render.summary._reading import Source

WORD: Final = re.compile(r"\w")
FRAME_LINES: Final = 400
"""Lines above a piece that are searched."""
FRAME_MAX: Final = 2
"""Lines of a frame."""
FRAME_CHARACTERS: Final = 160
VIEWED: Final = re.compile(r"[ \t]*\d{1,7}(?:→|\t|: |\|)")
"""The number that a viewer puts before a line."""
_DEFINED: Final = re.compile(
    r"(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|internal|static|final|abstract|async|override"
    r"|unsafe|extern|inline|virtual|open|data|sealed|partial|const|let|var)\s+)*"
    r"(?:(?:def|class|func|fn|fun|function\*?|interface|struct|impl|enum|trait|module|namespace|record|protocol"
    r"|extension|type|message|service|CREATE\s+\w+|describe|it|test)\b"
    r"|\w+\s*[:=][^=].*=>\s*[{(]?$|\w+\s*=\s*(?:async\s+)?function\b)"
)
"""A line that begins a definition, by the keywords of widespread languages."""
_CONTROL: Final = re.compile(
    r"\W*(?:if|else|elif|for|while|try|except|catch|finally|switch|case|with|do|return|default|when|unless|begin"
    r"|select|loop|match|await|yield|raise|throw)\b"
)
_OPENS: Final = re.compile(r"\w.*[:{(\[]$")
_TABLE: Final = re.compile(r"\s*\|.*\|\s*$")
_CAPITALS: Final = re.compile(r"\s*[A-Z%#][A-Z%#+()/_-]*(?:\s+[A-Z%#][A-Z%#+()/_-]*){2,}\s*$")
"""The heading of a table that a command prints: ps, df, docker, kubectl."""
MARKS: Final = re.compile(
    r"(?:@@ .*|index [0-9a-f]+\.\..*|--- .*|\+\+\+ .*|new file mode .*|```\w*)$"
)
"""Lines of a diff or of Markdown that only mark what follows."""
_CHANGED: Final = re.compile(r"diff --git |\+\+\+ ")
_SECTION: Final = re.compile(r"#{1,5} \S")


def frame_of(source: Source, number: int) -> tuple[str, ...]:
    """The lines above a piece that say where it stands, outermost first; of an earlier excerpt those that it had."""
    end = source.line_start(number)
    if source.is_whole or end == 0:
        return source.under
    above = source.text[:end].split("\n")[-FRAME_LINES - 1 : -1]
    line = source.piece(number).split("\n", 1)[0]
    found = _frame(
        line, above, is_prose=not source.file or source.file.endswith((".md", ".mdx", ".txt"))
    )
    found = [each.rstrip() for each in found if len(each) <= FRAME_CHARACTERS]
    return tuple(dict.fromkeys([*source.under, *found]))[-FRAME_MAX:]


def _frame(line: str, above: Sequence[str], *, is_prose: bool) -> list[str]:
    if _TABLE.match(line):
        rows = 0
        while rows < len(above) and _TABLE.match(above[-1 - rows]):
            rows += 1
        return [above[-rows]] if rows else []
    if line[:1] in {"+", "-", " "} and (changed := _last(above, _CHANGED)):
        return [changed]
    if above and _CAPITALS.match(above[0]):
        return [above[0]]
    if found := _enclosing(line, above):
        return found
    section = _last(above, _SECTION) if is_prose else ""
    return [section] if section else []


def _last(lines: Sequence[str], mark: re.Pattern[str]) -> str:
    return next((line for line in reversed(lines) if mark.match(line)), "")


def _enclosing(line: str, above: Sequence[str]) -> list[str]:
    """The definitions that a line is inside of, by indentation, at most `FRAME_MAX`; if none is known, what opens its
    block."""
    indent, defined, opened = _indent(bare(line)), list[str](), ""
    for each in reversed(above):
        if not indent or len(defined) == FRAME_MAX:
            break
        text = bare(each)
        words = text.strip()
        if not WORD.search(words) or _indent(text) >= indent:
            continue
        indent = _indent(text)
        if _DEFINED.match(words):
            defined.append(each)
        elif not opened and _OPENS.match(words) and not _CONTROL.match(words):
            opened = each
    return defined[::-1] or ([opened] if opened else [])


def bare(line: str) -> str:
    """The line without a viewer's number."""
    return VIEWED.sub("", line, count=1)


def plain(line: str) -> str:
    """The line without a viewer's number and white space around it."""
    return bare(line).strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
