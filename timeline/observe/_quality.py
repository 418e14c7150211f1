"""Quality signals: signs in a log of whether the prompts had what the agent needed.

    asked_again    a call that repeats an earlier one, in the same or other words, whose result was
                   hidden or folded at that moment; or a question that a hidden or folded block answers
    explicit_read  the model read something back with a reading tool
    rehydrated     an artifact came back into a prompt by itself
    task_end       whether a turn ended with the agent's answer

The view `quality` of a DuckDB file computes them; for events of another store, in a database in memory.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, cast

import attrs

from blocks import RangeCompacted, Recorded, TurnId
from persistence import quality_rows

Signal: TypeAlias = Literal["asked_again", "explicit_read", "rehydrated", "task_end"]
SIGNALS: Final[tuple[Signal, ...]] = ("asked_again", "explicit_read", "rehydrated", "task_end")
COMPLETED: Final = "completed"


@attrs.frozen
class Row:
    """One quality signal at one place in the log."""

    signal: Signal
    version: int
    """Version of the event that shows it."""
    turn: TurnId
    detail: str
    """The tool or `question`, with the place of the earlier call or answer; the artifacts; `completed`
    or `unfinished`."""


@attrs.frozen(kw_only=True)
class Quality:
    """All quality signals of a log, in the order of the log."""

    rows: tuple[Row, ...] = ()
    compactions: int = 0

    @property
    def totals(self) -> dict[Signal, int]:
        """The number of signals of each kind."""
        found = Counter(row.signal for row in self.rows)
        return {signal: found[signal] for signal in SIGNALS}

    @property
    def per_compaction(self) -> dict[Signal, float]:
        """The number of signals of each kind per compaction; empty if there was no compaction."""
        if not self.compactions:
            return {}
        return {signal: count / self.compactions for signal, count in self.totals.items()}

    @property
    def completed(self) -> int:
        """The number of turns that ended with the agent's answer."""
        return sum(row.signal == "task_end" and row.detail == COMPLETED for row in self.rows)


def quality_of(events: Iterable[Recorded]) -> Quality:
    """The quality signals of a whole log."""
    log = list(events)
    rows = (
        Row(cast("Signal", signal), version, TurnId(turn), detail)
        for signal, version, turn, detail in quality_rows(log)
    )
    compactions = sum(isinstance(event, RangeCompacted) for _, event in log)
    return Quality(rows=tuple(rows), compactions=compactions)
