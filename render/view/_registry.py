"""Lookup tables of a fold for calls, ids and paths, so that nothing searches the window.

Consecutive views share one registry, and the fold of the next block extends it. If another view has already
continued from the same start (for example, a trial view that was dropped), the registry is rebuilt from the
view's entries.
"""

from collections import deque
from collections.abc import Container, Iterable
from itertools import count
from typing import Self

import attrs

from blocks import Block, BlockId, CallId, Naming, ToolCall, ToolResult, TurnId
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import response_of


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
        found = [
            *self.blocks.get(BlockId(key), ())[:1],
            *([self.paths[key]] if key in self.paths else []),
        ]
        return min(found, default=0)


def _free_pair(call_id: str, version: int, taken: Container[str]) -> str:
    """The call's own id, made unique by the version of its block."""
    own = pair = call_id or "call"
    for number in count(1):  # more than once only if a given id looks like a generated one
        if pair not in taken:
            break
        pair = f"{own}_{version}_{number}" if number > 1 else f"{own}_{version}"
    return pair
