"""The view: the state of the log from the latest summary onward, and the part of it that is shown."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import attrs
import msgspec

from blocks import (
    CallId,
    Event,
    FoldState,
    Naming,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryPrepared,
    SummaryReplaced,
    TurnId,
)
from render.view._group import Entry, Group, GroupMemo, number
from render.view._masks import summary_entry
from render.view._registry import Registry

NO_TURN = TurnId("")


@attrs.frozen(kw_only=True)
class Compaction:
    """The compaction in force, with its summary and carried blocks."""

    version: int
    event: RangeCompacted = attrs.field(repr=False)
    head: Group = attrs.field(repr=False)
    """The summary and the carried blocks."""

    @property
    def naming(self) -> Naming:
        """The state for naming the blocks since its cut."""
        return Naming(self.event.state, self.version)

    def rewritten(self, event: SummaryReplaced) -> "Compaction":
        """The compaction with another summary."""
        written = {"summary": event.summary, "provenance": event.provenance}
        changed = msgspec.structs.replace(self.event, **written)
        summary = summary_entry(changed, self.version)
        entries = (
            summary if isinstance(entry.block, RangeSummary) else entry
            for entry in self.head.entries
        )
        group = attrs.evolve(self.head, entries=tuple(entries))
        return attrs.evolve(self, event=changed, head=group)


@attrs.frozen(kw_only=True)
class View:
    """An immutable fold of the events that still matter; every stage returns a new one.

    A stage that *decides* something calls `decide`, which records the event, so that the next render starts
    from it. A stage that only changes what is *shown* leaves no trace here.
    """

    version: int = 0
    compaction: Compaction | None = None
    groups: tuple[Group, ...] = attrs.field(default=(), repr=number)
    state: FoldState = attrs.field(factory=FoldState, repr=False)
    turn: TurnId = NO_TURN
    """The current turn."""
    turn_start: int = 0
    """Version of its first block in the view."""
    registry: Registry = attrs.field(factory=Registry, eq=False, repr=False)
    """The registry of ids and paths; shared with earlier and later views."""
    bound: tuple[int, ...] = attrs.field(default=(), repr=number)
    """Versions of the thinking before which nothing was rewritten."""
    pictured: int = 0
    """Version of the newest block with an image; 0: there is none."""
    thought: int = 0
    """Version of the newest thinking; 0: there is none."""
    prepared: tuple[SummaryPrepared, ...] = attrs.field(default=(), repr=number)
    """Summaries that were paid for and may still be used, newest last."""
    compacted: int = 0
    """Version of the newest event of a compaction, of any rung."""
    rewritten: int = 0
    """Version of the latest event that changed what had been shown before."""
    summarised: int = 0
    """Version of the latest compaction by the provider itself; blocks before it are no longer shown, because the
    provider would refuse or ignore them."""
    events_since_cut: tuple[Recorded, ...] = attrs.field(default=(), repr=False)
    """Every event since the cut, from which the next compaction builds its view."""
    decisions: tuple[Event, ...] = attrs.field(default=(), repr=number)
    """Events decided since the last commit."""
    group_memo: GroupMemo = attrs.field(factory=GroupMemo, eq=False, repr=False)
    """Values computed for the groups; passed on from view to view."""
    shared: dict[Any, Any] = attrs.field(factory=dict[Any, Any], eq=False, repr=False)
    """Values passed from view to view by key, even across compactions, for example the vocabulary."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Everything from the cut on, in log order."""
        return [entry for group in self.groups for entry in group.entries]

    def find(self, key: str) -> Entry | None:
        """The entry with this path or block id: the summary, a carried block, or the oldest entry from the cut on."""
        head = self.compaction.head.find(key) if self.compaction else None
        if head is not None:
            return head
        version = self._known.version_of(key)
        return self._entry(version) if version else None

    @property
    def new_turn(self) -> TurnId:
        """An unused name for a turn."""
        return TurnId(f"t{max(self.state.turns, self._known.naming.last_turn) + 1}")

    def turn_of(self, call_id: CallId) -> TurnId | None:
        """The turn of the newest call of this id without a result, or else of the newest call of this id."""
        waiting = self._known.open_turns.get(call_id)
        return waiting[-1] if waiting else self._known.turns.get(call_id)

    def unanswered(self, call_id: CallId) -> int | None:
        """How many calls of this id have no result; None: there is no such call."""
        return self._known.unanswered.get(call_id)

    def answered_at(self, call_id: CallId) -> int:
        """Version of the newest result of a call with this id; 0: there is none."""
        return self._known.answered.get(call_id, 0)

    def recorded_at(self, response: str) -> int:
        """Version of the newest event of the response with this id; 0: there is none."""
        return self._known.responses.get(response, 0)

    def sourced_at(self, source: str) -> int:
        """Version of the newest block from the foreign message or item with this id; 0: there is none."""
        return self._known.sources.get(source, 0)

    def own_registry(self) -> Registry:
        """The registry, to extend this view; it must be released afterwards."""
        if self.registry.claim(self._newest):
            return self.registry
        made = self._registered()
        made.claim(self._newest)
        return made

    @property
    def _known(self) -> Registry:
        return self.registry if self.registry.is_of(self._newest) else self._registered()

    def _registered(self) -> Registry:
        return Registry.of(self.groups, self.compaction.naming if self.compaction else Naming())

    @property
    def _newest(self) -> int:
        return self.groups[-1].last if self.groups else 0

    def _entry(self, version: int) -> Entry:
        group = self.groups[bisect_left(self.groups, version, key=attrgetter("last"))]
        return group.entries[group.place_of(version)]

    def settled(self) -> "View":
        """The view after its decisions are committed: the same, without decisions."""
        return attrs.evolve(self, decisions=()) if self.decisions else self


@attrs.frozen(kw_only=True)
class Shown:
    """The blocks that the model will see: the input of the stages after the decisions."""

    groups: tuple[Group, ...]
    turn_start: int
    """Version of the first block of the current turn."""
    tail: int
    """Version of the block that carried the last request's tail cache point; 0: none."""
    tail_before: int
    """The tail before that, of the latest request with a different tail; 0: none."""
    rounds: int
    """Rounds in `groups`."""
    group_memo: GroupMemo = attrs.field(repr=False)
    """The memo of the view; see `View.group_memo`."""


def slice_visible(view: View) -> Shown:
    """What is shown of the view: everything from the latest summary on."""
    head = (view.compaction.head,) if view.compaction else ()
    groups = view.groups
    if view.summarised:
        head, groups = (), _since(groups, view.summarised)
    unopened = sum(1 for group in groups[:1] if not group.round)  # only the first can
    return Shown(
        groups=(*head, *groups),
        turn_start=view.turn_start,
        tail=view.state.tail,
        tail_before=view.state.tail_before,
        rounds=len(groups) - unopened,
        group_memo=view.group_memo,
    )


def _since(groups: tuple[Group, ...], version: int) -> tuple[Group, ...]:
    """The groups from the block of this version on."""
    index = bisect_left(groups, version, key=attrgetter("last"))
    first, later = groups[index], groups[index + 1 :]
    return (first.memo(("since", version), lambda: _from(first, version)), *later)


def _from(group: Group, version: int) -> Group:
    return attrs.evolve(group, entries=tuple(e for e in group.entries if e.version >= version))
