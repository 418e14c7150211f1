"""Detecting that a file was changed by something other than the calls that are followed.

The agent's own lines that no call has changed since are known. If a later view of the file has the first
and last of them once each, but other lines between them, then a command, another program or a person
changed the file. This is only reported if it is certain: both lines are there, the view has no gap, and no
call in between named the file without being followed.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs

from render.summary._changes import Change

TELLING: Final = 20
"""A line of this many characters hardly occurs twice in a file."""
RUN_MIN: Final = 3
"""The least lines of a run, so that there is one between the first and the last."""
RUNS_MAX: Final = 50
"""The most runs kept per file, the newest."""
COMPARED: Final = 200
"""Characters of a line that are compared, because viewers cut long lines."""

Line: TypeAlias = tuple[int, int, str]
"""A line's offset in its source, its number in the file (0: not known), and its text."""


@attrs.frozen
class Run:
    """Adjacent lines that the agent wrote."""

    done: int
    """Version of the result that confirmed the write."""
    lines: tuple[str, ...]


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
