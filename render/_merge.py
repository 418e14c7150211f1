"""Merging summaries, by rule and not by a model: what must not drift is carried forward verbatim.

When the limit forces something out, the oldest tool outcomes go first, then completed work, then
artifacts, errors and open items; facts and decisions only after all of these, constraints and the
task never.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from blocks import StructuredSummary
from render._report import report_summary

EXPENDABLE: Final = (
    "tool_outcomes",
    "completed",
    "artifacts",
    "errors",
    "open_items",
    "facts",
    "decisions",
)
"""Lists that may lose entries, in this order, oldest entry first."""


def merge_summaries(
    previous: StructuredSummary | None,
    new: StructuredSummary,
    tokens_max: int,
    count: Callable[[str], int],
) -> StructuredSummary:
    """One summary that covers both, in at most `tokens_max` tokens where the rules allow it.

    Of `new` come state, plan and turn context; the task is the older one; lists are joined.
    """
    if previous is None:
        return _fitted(new, tokens_max, count)
    merged = msgspec.structs.replace(
        new,
        task=previous.task or new.task,
        constraints=_union(previous.constraints, new.constraints),
        state=new.state or previous.state,
        plan=new.plan or previous.plan,
        **{name: _union(getattr(previous, name), getattr(new, name)) for name in EXPENDABLE},
    )
    return _fitted(merged, tokens_max, count)


def _union(old: Iterable[object], new: Iterable[object]) -> tuple[object, ...]:
    return tuple(dict.fromkeys([*old, *new]))


def _fitted(
    summary: StructuredSummary, tokens_max: int, count: Callable[[str], int]
) -> StructuredSummary:
    for name in EXPENDABLE:
        while (items := getattr(summary, name)) and count(report_summary(summary)) > tokens_max:
            # An eighth at a time: a list of hundreds must not be counted hundreds of times.
            left = items[max(1, len(items) // 8) :]
            summary = msgspec.structs.replace(summary, **{name: left})
    return summary
