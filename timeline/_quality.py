"""Quality signals: what a log tells about how well the agent got along with what it was shown.

    asked_again    a call that repeats an earlier one whose result was out of sight at that moment
    explicit_read  the model read something back with a reading tool
    rehydrated     an artifact came back into a prompt by itself
    task_end       whether a turn ended with the agent giving the floor back

A pure fold over events; the view `quality` of a DuckDB file gives the same rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CallId,
    HideReason,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    RequestRendered,
    ToolCall,
    ToolResult,
    TurnId,
)

Signal: TypeAlias = Literal["asked_again", "explicit_read", "rehydrated", "task_end"]
SIGNALS: Final[tuple[Signal, ...]] = ("asked_again", "explicit_read", "rehydrated", "task_end")
READING_TOOLS: Final = frozenset({"read_timeline", "read_artifact"})
NOT_OURS: Final[frozenset[HideReason]] = frozenset({"requested", "unsigned"})
"""Hides that say nothing about the engine: somebody asked, or the provider would have refused."""
NO_BLOCK: Final = BlockId("")
NO_TURN: Final = TurnId("")
COMPLETED: Final = "completed"
UNFINISHED: Final = "unfinished"


@attrs.frozen
class Row:
    """One observation."""

    signal: Signal
    version: int
    """Of the event that shows it."""
    turn: TurnId
    detail: str
    """The tool and where it was asked before; the artifacts; `completed` or `unfinished`."""


@attrs.frozen(kw_only=True)
class Quality:
    """All observations of a log, in its order."""

    rows: tuple[Row, ...] = ()
    compactions: int = 0

    @property
    def totals(self) -> dict[Signal, int]:
        """How many of each."""
        found = Counter(row.signal for row in self.rows)
        return {signal: found[signal] for signal in SIGNALS}

    @property
    def per_compaction(self) -> dict[Signal, float]:
        """How many for each compaction; empty while there was none."""
        if not self.compactions:
            return {}
        return {signal: count / self.compactions for signal, count in self.totals.items()}

    @property
    def completed(self) -> int:
        """Turns that ended with the agent giving the floor back."""
        return sum(row.signal == "task_end" and row.detail == COMPLETED for row in self.rows)


@attrs.frozen
class _Made:
    """A call, and its newest result so far."""

    version: int
    result: int = 0
    block: BlockId = NO_BLOCK


@attrs.define
class _Turn:
    """What a turn has come to."""

    said: int = 0
    """Version of the last block that the model wrote."""
    is_text: bool = False
    open: set[int] = attrs.field(factory=set[int])
    """Versions of its calls that have no result."""


@attrs.define
class _Fold:
    """The log so far."""

    turn: TurnId = NO_TURN
    compactions: int = 0
    cuts: dict[int, int] = attrs.field(factory=dict[int, int])
    """Of each compaction in force, by its version; the last one counts."""
    hidden: dict[BlockId, HideReason] = attrs.field(factory=dict[BlockId, HideReason])
    has_rewritten: bool = False
    asked: dict[bytes, int] = attrs.field(factory=dict[bytes, int])
    """Version of the latest call with this name and input."""
    calls: dict[int, _Made] = attrs.field(factory=dict[int, _Made])
    by_id: dict[CallId, tuple[int, TurnId]] = attrs.field(factory=dict[CallId, tuple[int, TurnId]])
    turns: dict[TurnId, _Turn] = attrs.field(factory=dict[TurnId, _Turn])

    def add(self, recorded: Recorded) -> Iterator[Row]:
        version, event = recorded
        match event:
            case BlockAppended():
                yield from self._block(version, event)
            case BlocksHidden():
                self.hidden |= {item.block: event.reason for item in event.hidden}
                self.has_rewritten |= event.reason not in NOT_OURS
            case BlocksRestored():
                for block in event.blocks:
                    self.hidden.pop(block, None)
            case RangeCompacted():
                self.cuts[version] = event.cut
                self.compactions += 1
                self.has_rewritten = True
            case RangeExpanded():
                self.cuts.pop(event.compaction, None)
            case RequestRendered() if event.rehydrated:
                yield Row("rehydrated", version, self.turn, " ".join(event.rehydrated))
            case _:
                pass

    def _block(self, version: int, event: BlockAppended) -> Iterator[Row]:
        block = event.block
        self.turn = block.turn
        match block:
            case ToolCall():
                yield from self._call(version, block)
            case ToolResult():
                self._result(version, block)
            case AssistantCompletion() | AssistantThinking():
                turn = self.turns.setdefault(block.turn, _Turn())
                turn.said, turn.is_text = version, isinstance(block, AssistantCompletion)
            case _:
                pass

    def _call(self, version: int, call: ToolCall) -> Iterator[Row]:
        key = msgspec.json.encode([call.name, call.input])
        before = self.asked.get(key)
        if before and self._is_out_of_sight(self.calls[before]):
            yield Row("asked_again", version, call.turn, f"{call.name}, as at {before}")
        if self.has_rewritten and call.name in READING_TOOLS:
            yield Row("explicit_read", version, call.turn, call.name)
        self.asked[key], self.calls[version] = version, _Made(version)
        self.by_id[call.call_id] = version, call.turn
        turn = self.turns.setdefault(call.turn, _Turn())
        turn.said, turn.is_text = version, False
        turn.open.add(version)

    def _result(self, version: int, result: ToolResult) -> None:
        """Call ids repeat in real logs: a result belongs to the latest call before it."""
        made, turn = self.by_id.get(result.call_id, (0, NO_TURN))
        if made:
            self.calls[made] = _Made(made, version, result.id)
            self.turns[turn].open.discard(made)

    def _is_out_of_sight(self, call: _Made) -> bool:
        cut = next(reversed(self.cuts.values()), 0)
        if not call.result:
            return False
        return call.result < cut or self.hidden.get(call.block, "requested") not in NOT_OURS

    def ends(self) -> Iterator[Row]:
        for name, turn in self.turns.items():
            detail = COMPLETED if turn.is_text and not turn.open else UNFINISHED
            yield Row("task_end", turn.said, name, detail)


def quality_of(events: Iterable[Recorded]) -> Quality:
    """The quality signals of a whole log."""
    fold = _Fold()
    rows = [row for recorded in events for row in fold.add(recorded)]
    ordered = sorted([*rows, *fold.ends()], key=lambda row: (row.version, row.signal))
    return Quality(rows=tuple(ordered), compactions=fold.compactions)
