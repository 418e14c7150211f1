"""A log of 20,000 blocks, written down event by event: nothing is rendered and nothing decided, so it is quick."""

from collections.abc import Iterator
from itertools import count

from blocks import (
    AssistantCompletion,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    CallId,
    Carried,
    Digest,
    Event,
    EventId,
    Hidden,
    HideReason,
    Note,
    RangeCompacted,
    RangeSummary,
    Recorded,
    RequestRendered,
    StructuredSummary,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UserPrompt,
)

CALLS_EACH = 4
ROUNDS_EACH = 20
FOLD_EVERY = 100
REASONS: tuple[HideReason, ...] = ("expired", "externalized", "cleared", "clipped", "requested")


def long_log(blocks: int = 20_000) -> list[Recorded]:
    """So many blocks, in turns of 20 rounds, a compaction every 100 rounds, something hidden between them."""
    return list(enumerate(_Log().events(blocks), 1))


class _Log:
    """Events one after the other."""

    def __init__(self) -> None:
        self.version = 0
        self.blocks = 0
        self.start = 1
        self.results: list[BlockId] = []
        self.noted: list[Carried] = []
        self.ids = count(1)

    def events(self, blocks: int) -> Iterator[Event]:
        for number in count():
            if self.blocks >= blocks:
                return
            for event in self.round(number):
                self.version += 1
                yield event

    def round(self, number: int) -> Iterator[Event]:
        turn = TurnId(f"t{number // ROUNDS_EACH + 1}")
        if number % ROUNDS_EACH == 0:
            yield self.appended(TurnHeader(id=self.id(), turn=turn), number)
            text = f"Please look into module_{number}.py, and never touch settings_{number}.toml."
            yield self.appended(UserPrompt(id=self.id(), turn=turn, text=text), number)
        if number and number % FOLD_EVERY == 0:
            yield self.fold(number, turn)
        elif number % 7 == 3:
            yield self.hide(number)
        at = float(number * 20)
        yield RequestRendered(
            id=EventId(self.id()),
            at=at,
            content_hash="",
            tokens=2_000 + 500 * (number % FOLD_EVERY),
            shown=self.version,
        )
        yield from (self.appended(block, number) for block in self.answer(number, turn))

    def answer(self, number: int, turn: TurnId) -> Iterator[Block]:
        said = f"r{number}"
        text = f"Looking at function_{number} in module_{number}.py now."
        yield AssistantCompletion(id=self.id(), turn=turn, response=said, text=text)
        for call in range(CALLS_EACH):
            yield ToolCall(
                id=self.id(),
                turn=turn,
                response=said,
                call_id=CallId(f"c{number}.{call}"),
                name="read_file",
                input={"path": f"src/module_{number}_{call}.py"},
            )
        for call in range(CALLS_EACH):
            self.results.append(self.id())
            lines = (f"value_{number}_{call}_{line} = {line}" for line in range(8))
            yield ToolResult(
                id=self.results[-1],
                turn=turn,
                call_id=CallId(f"c{number}.{call}"),
                parts=(TextPart(text="\n".join(lines)),),
            )
        if number % FOLD_EVERY == FOLD_EVERY // 2:
            made = Note(id=self.id(), turn=turn, text=f"Remember module_{number}.py.")
            self.noted.append(Carried(version=self.version + 1, block=made))
            yield made

    def hide(self, number: int) -> BlocksHidden:
        reason = REASONS[number // 7 % len(REASONS)]
        hidden = tuple(Hidden(block=each, replacement="[moved]") for each in self.results[-3:])
        return BlocksHidden(id=EventId(self.id()), at=number * 20.0, hidden=hidden, reason=reason)

    def fold(self, number: int, turn: TurnId) -> RangeCompacted:
        cut, start = self.version + 1, self.start
        self.start = cut
        facts = tuple(f"module_{each}.py was read" for each in range(number - 10, number))
        summary = RangeSummary(
            id=self.id(),
            turn=turn,
            start=start,
            cut=cut,
            summary=StructuredSummary(task="Look into every module.", facts=facts),
            digest=Digest(blocks=self.blocks, compactions=number // FOLD_EVERY),
        )
        return RangeCompacted(
            id=EventId(self.id()),
            at=number * 20.0,
            start=start,
            cut=cut,
            summary=summary,
            carried=tuple(self.noted),
            tokens_before=52_000,
            tokens_after=2_000,
        )

    def appended(self, block: Block, number: int) -> BlockAppended:
        self.blocks += 1
        return BlockAppended(id=EventId(self.id()), at=number * 20.0 + 5, block=block)

    def id(self) -> BlockId:
        return BlockId(f"b{next(self.ids)}")
