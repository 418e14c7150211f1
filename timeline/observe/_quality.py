"""Quality signals: what a log tells about how well the agent got along with what it was shown.

    asked_again    a call that repeats an earlier one, in the same or other words, whose result was
                   out of sight at that moment; a question that a block answers which was
    explicit_read  the model read something back with a reading tool
    rehydrated     an artifact came back into a prompt by itself
    task_end       whether a turn ended with the agent giving the floor back

What counts as the same in other words, `persistence.asked_for` and its neighbours say.

A pure fold over events; the view `quality` of a DuckDB file gives the same rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, Literal, TypeAlias

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CallId,
    Envelope,
    HideReason,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    RequestRendered,
    ToolCall,
    ToolResult,
    TurnId,
)
from persistence import asked_for, questions_in, said_in, words_in

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
    """The tool, or `question`, and where it was asked or answered before; the artifacts; `completed`
    or `unfinished`."""


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


@attrs.frozen(eq=False)
class _Said:
    """A block that may answer a question."""

    version: int
    block: Block

    @cached_property
    def words(self) -> frozenset[str]:
        """Worked out only where a question was asked."""
        return words_in(said_in(self.block))


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

    declared: Mapping[str, Envelope] = attrs.field(factory=dict[str, Envelope])
    """By tool: the newest envelope that says of which kind it is."""
    turn: TurnId = NO_TURN
    said: list[_Said] = attrs.field(factory=list[_Said])
    compactions: int = 0
    cuts: dict[int, int] = attrs.field(factory=dict[int, int])
    """Of each compaction in force, by its version; the last one counts."""
    hidden: dict[BlockId, HideReason] = attrs.field(factory=dict[BlockId, HideReason])
    has_rewritten: bool = False
    asked: dict[bytes | str, int] = attrs.field(factory=dict[bytes | str, int])
    """Version of the latest call that asked for this."""
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
        if isinstance(block, AssistantCompletion) and self.has_rewritten:
            yield from self._questions(version, block)
        self.said.append(_Said(version, block))
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
        key = asked_for(call.name, call.input, self.declared.get(call.name)) or msgspec.json.encode(
            [call.name, call.input]
        )
        before = self.asked.get(key)
        if before and self._was_answered_out_of_sight(self.calls[before]):
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

    def _questions(self, version: int, block: AssistantCompletion) -> Iterator[Row]:
        """Each question whose newest answer was out of sight."""
        found: dict[int, None] = {}
        for question in questions_in(said_in(block)):
            answer = next((said for said in reversed(self.said) if said.words >= question), None)
            if answer and self._is_out_of_sight(answer.version, answer.block.id):
                found[answer.version] = None
        for before in found:
            yield Row("asked_again", version, block.turn, f"question, as at {before}")

    def _was_answered_out_of_sight(self, call: _Made) -> bool:
        return bool(call.result) and self._is_out_of_sight(call.result, call.block)

    def _is_out_of_sight(self, version: int, block: BlockId) -> bool:
        cut = next(reversed(self.cuts.values()), 0)
        return version < cut or self.hidden.get(block, "requested") not in NOT_OURS

    def ends(self) -> Iterator[Row]:
        for name, turn in self.turns.items():
            detail = COMPLETED if turn.is_text and not turn.open else UNFINISHED
            yield Row("task_end", turn.said, name, detail)


def quality_of(events: Iterable[Recorded]) -> Quality:
    """The quality signals of a whole log."""
    log = list(events)
    fold = _Fold(declared=_declared(log))
    rows = [row for recorded in log for row in fold.add(recorded)]
    ordered = sorted([*rows, *fold.ends()], key=lambda row: (row.version, row.signal))
    return Quality(rows=tuple(ordered), compactions=fold.compactions)


def _declared(log: Iterable[Recorded]) -> dict[str, Envelope]:
    """What tools declare about themselves: a result belongs to the latest call before it."""
    names: dict[CallId, str] = {}
    declared: dict[str, Envelope] = {}
    for _, event in log:
        block = event.block if isinstance(event, BlockAppended) else None
        if isinstance(block, ToolCall):
            names[block.call_id] = block.name
        elif isinstance(block, ToolResult) and block.envelope.kind and block.call_id in names:
            declared[names[block.call_id]] = block.envelope
    return declared
