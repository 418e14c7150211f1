"""Whether a file was changed by something other than the calls that are followed.

Known is what the agent wrote and no call has changed since.  Where a later view of the file has the first and
the last line of that, each once, and not the same lines between them, something else has changed it: a
command, another program, a person.  It is not said where it is not sure: the first and the last line must be
there, the view must be without a gap, and no call between may have named the file in a way that is not followed.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs

from render.summary._changes import Change

TELLING: Final = 20
"""Characters of a line that a file hardly holds twice."""
RUN_MIN: Final = 3
"""Lines of which some are between the first and the last."""
RUNS_MAX: Final = 50
"""Of a file, the newest."""
COMPARED: Final = 200
"""Characters of a line: viewers cut long ones."""

Line: TypeAlias = tuple[int, int, str]
"""Where it begins in its source, its number in the file (0: not known), and its text."""


@attrs.frozen
class Run:
    """Lines that the agent wrote, one behind the other."""

    done: int
    """Version of the result that said so."""
    lines: tuple[str, ...]


def runs_after(runs: Sequence[Run], change: Change, done: int) -> list[Run]:
    """What the agent wrote and has not changed, after one more change."""
    left = [run for run in runs if change.old and not _is_touched(run, change.old)]
    if change.is_run and len(change.new) >= RUN_MIN:
        left.append(Run(done, change.new))
    return left[-RUNS_MAX:]


def _is_touched(run: Run, old: Sequence[str]) -> bool:
    text = "\n".join(run.lines)
    return any(line in text for line in old)


def contradicts(text: str, lines: Sequence[Line], run: Run) -> bool:
    """Whether a text that shows lines of a file has others where the agent wrote these."""
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
