"""The view: the state of the log from the latest summary onward, and the part of it that is shown.

A view finds calls, ids and paths in a *registry*, so that nothing searches the window. Consecutive views share one
registry, and the fold of the next block extends it. If another view has already continued from the same start (for
example, a trial view that was dropped), the registry is rebuilt from the view's entries.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Any, Self

import attrs
import msgspec

from blocks import (
    Block,
    BlockId,
    CallId,
    Event,
    FoldState,
    Naming,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryPrepared,
    SummaryReplaced,
    ToolCall,
    ToolResult,
    TurnId,
)
from render.view._group import Entry, Group, GroupMemo, Place, number, response_of, summary_entry

NO_TURN = TurnId("")


# The registry.


@attrs.define(eq=False)
class Registry:
    """The lookup tables of all entries up to one version."""

    naming: Naming = attrs.field(factory=Naming)
    """Gives the next block its path."""
    pairs: set[str] = attrs.field(factory=set[str], init=False)
    """Every id that a call has on the wire."""
    turns: dict[CallId, TurnId] = attrs.field(factory=dict[CallId, TurnId], init=False)
    """By call id: the turn of the newest such call."""
    open_turns: dict[CallId, list[TurnId]] = attrs.field(
        factory=dict[CallId, list[TurnId]], init=False
    )
    """By call id: the turns of the calls without a result, the newest last."""
    unanswered: dict[CallId, int] = attrs.field(factory=dict[CallId, int], init=False)
    """By call id: calls less results."""
    answered: dict[CallId, int] = attrs.field(factory=dict[CallId, int], init=False)
    """By call id: the version of the newest result."""
    responses: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By response id: the version of its newest event."""
    sources: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By the foreign id of a block: the version of the newest such block."""
    paths: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    """By path: the version of the oldest entry with it."""
    blocks: dict[BlockId, list[int]] = attrs.field(factory=dict[BlockId, list[int]], init=False)
    """By block id: the versions; a broken log may have several."""

    # About the newest group.
    is_calling: bool = attrs.field(default=False, init=False)
    """Whether it contains a call."""
    is_answered: bool = attrs.field(default=False, init=False)
    """Whether it contains a block of another author after its first block by the model."""
    _has_begun: bool = attrs.field(default=False, init=False)
    """Whether it contains a block by the model."""
    _waiting: dict[CallId, deque[tuple[int, str]]] = attrs.field(
        factory=dict[CallId, deque[tuple[int, str]]], init=False
    )
    """By call id: versions and wire ids of the calls without a result, oldest first."""

    _newest: dict[int, bool] = attrs.field(factory=lambda: {0: True}, init=False)
    """The version of the newest entry; empty while it is being extended."""

    @classmethod
    def of(cls, groups: Iterable[Group], naming: Naming) -> Self:
        """The registry of these groups; `naming` is the state before them."""
        made = cls(naming=naming)
        made.claim(0)
        last = 0
        for group in groups:
            made.begin_group()
            for entry in group.entries:
                naming.path(entry.source, entry.version)
                made.add(entry)
                last = entry.version
        made.release(last)
        return made

    def is_of(self, newest: int) -> bool:
        """Whether it has all entries up to version `newest`, and no others."""
        return newest in self._newest

    def claim(self, newest: int) -> bool:
        """Take the registry to add entries after this version; False if another thread or view has taken
        it."""
        return self._newest.pop(newest, False)

    def release(self, newest: int) -> None:
        """Return the registry; `newest` is now its newest version."""
        self._newest[newest] = True

    # Adding.

    def begin_group(self) -> None:
        """Begin a new group: later entries belong to it."""
        self.is_calling = self.is_answered = self._has_begun = False
        self._waiting.clear()

    def pair(self, version: int, block: Block, place: Place, sealed: int) -> tuple[Place, str]:
        """The place of a block in the newest group, and the id that joins it to its call or result; calls up to the
        version `sealed` were shown as interrupted."""
        if isinstance(block, ToolCall):
            return place, _free_pair(block.call_id, version, self.pairs)
        if not isinstance(block, ToolResult):
            return place, ""
        call = self.waiting(block.call_id, sealed)
        if call is not None and not self._is_for_another(block):
            return Place.RESULT, call
        return (Place.LATE if block.call_id in self.turns else Place.ORPHAN), ""

    def _is_for_another(self, result: ToolResult) -> bool:
        """Whether a result belongs to an older turn, which has a call of this id without a result."""
        turns = self.open_turns.get(result.call_id, [])
        return result.turn in turns and turns[-1] != result.turn

    def add(self, entry: Entry) -> None:
        """Record the next entry of the newest group."""
        block, version = entry.block, entry.version
        self.paths.setdefault(entry.path, version)
        self.blocks.setdefault(block.id, []).append(version)
        if entry.place not in (Place.RESPONSE, Place.SILENT):
            self.is_answered = self._has_begun
        self._has_begun = self._has_begun or entry.place is Place.RESPONSE
        if response := response_of(block):
            self.responses[response] = version
        if block.source:
            self.sources[block.source] = version
        if isinstance(block, ToolResult) and entry.place is not Place.ORPHAN:
            self.unanswered[block.call_id] = self.unanswered.get(block.call_id, 0) - 1
            self.answered[block.call_id] = version
            turns = self.open_turns.get(block.call_id)
            if turns:
                turns.remove(block.turn if block.turn in turns else turns[-1])
        if isinstance(block, ToolCall):
            self.unanswered[block.call_id] = self.unanswered.get(block.call_id, 0) + 1
            self.is_calling = True
            self.pairs.add(entry.pair)
            self.turns[block.call_id] = block.turn
            self.open_turns.setdefault(block.call_id, []).append(block.turn)
            self._waiting.setdefault(block.call_id, deque()).append((version, entry.pair))
        elif entry.place is Place.RESULT and isinstance(block, ToolResult):
            calls = self._waiting.get(block.call_id, deque())
            while calls and calls.popleft()[1] != entry.pair:
                pass  # a call that was shown as interrupted

    # Finding.

    def joins(self, group: Group, block: Block) -> bool:
        """Whether a block of the model belongs to the newest group, `group`, instead of beginning a round.

        Blocks of one response do, even after a result of one of its earlier calls (logs interleave parallel
        calls). Without a response id, a block does unless a block of another author has followed the
        model's first one.
        """
        if group.round == 0 or group.sealed:
            return False
        response = response_of(block)
        if response or group.response:
            return response == group.response
        return not self.is_answered

    def waiting(self, call_id: CallId, after: int) -> str | None:
        """The wire id of the group's oldest call of this id without a result, or None. Calls up to version
        `after` were shown as interrupted and no longer count."""
        calls = self._waiting.get(call_id)
        while calls and calls[0][0] <= after:
            calls.popleft()
        return calls[0][1] if calls else None

    def version_of(self, key: str) -> int:
        """The version of the oldest entry with this path or block id; 0: there is none."""
        versions = [
            *self.blocks.get(BlockId(key), ())[:1],
            *([self.paths[key]] if key in self.paths else []),
        ]
        return min(versions, default=0)


def _free_pair(call_id: str, version: int, taken: Container[str]) -> str:
    """The call's own id, made unique by the version of its block."""
    own = pair = call_id or "call"
    for attempt in count(1):  # more than once only if a given id looks like a generated one
        if pair not in taken:
            break
        pair = f"{own}_{version}_{attempt}" if attempt > 1 else f"{own}_{version}"
    return pair


# The view.


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

    @cached_property
    def shown(self) -> "Shown":
        """What is shown of the view: everything from the latest summary on."""
        head = (self.compaction.head,) if self.compaction else ()
        groups = self.groups
        if self.summarised:
            head, groups = (), _since(groups, self.summarised)
        unopened = sum(1 for group in groups[:1] if not group.round)  # only the first can
        return Shown(
            groups=(*head, *groups),
            turn_start=self.turn_start,
            tail=self.state.tail,
            tail_before=self.state.tail_before,
            rounds=len(groups) - unopened,
            group_memo=self.group_memo,
        )

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


def _since(groups: tuple[Group, ...], version: int) -> tuple[Group, ...]:
    """The groups from the block of this version on."""
    index = bisect_left(groups, version, key=attrgetter("last"))
    first, later = groups[index], groups[index + 1 :]
    return (first.memo(("since", version), lambda: _from(first, version)), *later)


def _from(group: Group, version: int) -> Group:
    return attrs.evolve(group, entries=tuple(e for e in group.entries if e.version >= version))
