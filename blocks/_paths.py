"""Logical paths: how a block is named to a model and to a person.

    ar:<turn>.user.prompt              what was said, by kind; .2, .3 for further ones of the turn
    ar:<turn>.assistant.completion.2
    tc:<turn>.<call id>.call           tool traffic, by call
    tc:<turn>.<call id>.result
    su:<turn>.conv.range.summary       summaries
    fi:<turn>.<name>                   files that came with the user's words
    at:<version>.<turn>...             a block that counting could not tell from others; see `Naming`
    v<version>                         any block, as short as can be: its label, `[v57]` where it is shown

A path is derived and never stored, so it costs nothing and cannot disagree with the log.
"""

import re
from typing import Final

from blocks._block import Block, RangeSummary, ToolCall, ToolResult, UserAttachment, tag_of


def path_stem(block: Block) -> str:
    """The path of the first such block of its turn."""
    match block:
        case ToolCall():
            return f"tc:{block.turn}.{block.call_id}.call"
        case ToolResult():
            return f"tc:{block.turn}.{block.call_id}.result"
        case UserAttachment():
            return f"fi:{block.turn}.{block.name}"
        case RangeSummary():
            return f"su:{block.turn}.conv.range.summary"
        case _:
            return f"ar:{block.turn}.{tag_of(block)}"


def path_of(block: Block, ordinal: int = 1) -> str:
    """The path of the `ordinal`-th block (from 1) with this stem."""
    stem = path_stem(block)
    return stem if ordinal == 1 else f"{stem}.{ordinal}"


def path_at(block: Block, version: int) -> str:
    """The path of the block of this version; every block has one, beside what it may be counted as."""
    return f"at:{version}.{path_stem(block)[len('ar:') :]}"


def label_of(version: int) -> str:
    """The shortest path of the block of this version."""
    return f"v{version}"


def version_in(path: str) -> int:
    """The version that a path or a label, in brackets or not, names; 0: it names none."""
    found = _AT.match(path) or _LABEL.fullmatch(path)
    return int(found[1]) if found else 0


def is_label(path: str) -> bool:
    """Whether a path is a version and nothing else."""
    return _LABEL.fullmatch(path) is not None


def numbered(path: str) -> tuple[str, int]:
    """A path without the number at its end, and the number; 1 if there is none."""
    found = _NUMBERED.fullmatch(path)
    return (found[1], int(found[2])) if found else (path, 1)


def turn_in(path: str) -> str:
    """The turn of the counted block that has this path."""
    return path.partition(":")[2].partition(".")[0]


_AT: Final = re.compile(r"at:([1-9][0-9]{0,14})\.")
_LABEL: Final = re.compile(r"\[?v([1-9][0-9]{0,14})\]?")
_NUMBERED: Final = re.compile(r"(.+)\.([1-9][0-9]{0,14})", re.DOTALL)
