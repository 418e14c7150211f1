"""The view: the log as it stands, from the latest summary onward."""

from collections.abc import Sequence

import attrs

from blocks import Event, FoldState, RangeCompacted, Recorded, SummaryPrepared, TurnId
from render._group import Entry, Group, number
from render._shelf import Shelf

NO_TURN = TurnId("")


@attrs.frozen(kw_only=True)
class Compaction:
    """The compaction in force, and what it carried past its cut."""

    version: int
    event: RangeCompacted = attrs.field(repr=False)
    head: Group = attrs.field(repr=False)
    """The summary, and what was carried past the cut."""


@attrs.frozen(kw_only=True)
class View:
    """An immutable fold of the events that still matter; every stage returns a new one.

    A stage that *decides* something does so with `decide`, which records the event, so that the
    next render starts from it.  A stage that only *shows* something leaves no trace here.
    """

    version: int = 0
    compaction: Compaction | None = None
    groups: tuple[Group, ...] = attrs.field(default=(), repr=number)
    state: FoldState = attrs.field(factory=FoldState, repr=False)
    turn: TurnId = NO_TURN
    """The current turn."""
    turn_start: int = 0
    """Version of its first block in the view."""
    calls: frozenset[str] | set[str] = attrs.field(default=frozenset(), repr=number)
    """Every call id in the view; not to be changed."""
    wire_ids: frozenset[str] | set[str] = attrs.field(default=frozenset(), repr=False)
    """Every id that a call has on the wire; not to be changed."""
    ordinals: dict[str, int] = attrs.field(factory=dict[str, int], repr=False)
    """Blocks by path stem; not to be changed."""
    prepared: tuple[SummaryPrepared, ...] = attrs.field(default=(), repr=number)
    """Summaries that were paid for and may still be used, newest last."""
    compacted: int = 0
    """Version of the newest event of a compaction, whatever rung it came from."""
    rewritten: int = 0
    """Version of the latest event that changed what had been shown before."""
    summarised: int = 0
    """Version of the latest compaction that the provider made itself: what precedes it is not shown
    any more, because the provider would refuse it there, or ignore it."""
    tape: tuple[Recorded, ...] = attrs.field(default=(), repr=False)
    """Every event since the cut: what the next compaction starts its view from."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=number)
    """Events decided since the last commit."""
    shelf: Shelf = attrs.field(factory=Shelf, eq=False, repr=False)
    """What was worked out for the groups; goes on from view to view."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Everything from the cut on, in log order."""
        return [entry for group in self.groups for entry in group.entries]

    def settled(self) -> "View":
        """The same view once its decisions are committed."""
        return attrs.evolve(self, decisions=())
