"""A model response being built, with everything that arrived until the next response."""

import math
from collections.abc import Iterator

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CallId,
    EventId,
    ToolCall,
    ToolResult,
    TurnId,
    UsageRecorded,
)
from blocks.formats import Json
from persistence.sessions._returned import Returned
from persistence.sessions._session import Arrived, Item, Responded

NEW = BlockId("")
"""A placeholder until `numbered` assigns block ids."""


@attrs.define(eq=False)
class Asked:
    """A tool call of the response."""

    call: ToolCall
    at: float = 0.0
    """When it was logged; 0: unknown."""


@attrs.define(eq=False)
class Stretch:
    """A response, the results of its calls even if they were logged later, and everything else until the next
    response."""

    id: str
    turn: TurnId
    at: float
    until: float = math.inf
    """When the next response was requested."""
    model: str = ""
    usage: UsageRecorded | None = None
    blocks: list[Block] = attrs.field(factory=list[Block])
    results: list[Arrived] = attrs.field(factory=list[Arrived])
    arrived: list[Arrived] = attrs.field(factory=list[Arrived])
    _asked: dict[CallId, Asked] = attrs.field(factory=dict[CallId, Asked], init=False)

    def say(self, text: str) -> None:
        """Add text of the model, unless it is blank."""
        if text.strip():
            block = AssistantCompletion(id=NEW, turn=self.turn, response=self.id, text=text)
            self.blocks.append(block)

    def call(self, call_id: CallId, name: str, tool_input: Json) -> Asked:
        """Add a tool call to the response."""
        block = ToolCall(
            id=NEW,
            turn=self.turn,
            response=self.id,
            call_id=call_id,
            name=name or "tool",
            input=tool_input,
        )
        self.blocks.append(block)
        asked = self._asked[call_id] = Asked(block)
        return asked

    def answer(self, call_id: CallId, returned: Returned, at: float) -> None:
        """Add the result of one of its calls."""
        asked = self._asked[call_id]
        block = ToolResult(
            id=NEW,
            turn=self.turn,
            call_id=call_id,
            parts=returned.parts,
            is_error=returned.is_error,
            envelope=returned.envelope(asked.call, asked.at, at),
        )
        # The result is moved to its call, so its time must not be later than the next response.
        at = max(min(at, self.until), self.at)
        self.results.append(Arrived(at=at, blocks=(block,)))

    def think(self, provider: Json) -> None:
        """Add a thinking block, as the provider sent it."""
        self.blocks.append(
            AssistantThinking(id=NEW, turn=self.turn, response=self.id, provider=provider)
        )

    def spent(self, prompt: int, cached: int, output: int, written: int = 0) -> UsageRecorded:
        """The usage of the response. `prompt` includes the tokens read from the cache (`cached`), but not those written
        to it (`written`)."""
        cached = min(cached, prompt)
        return UsageRecorded(
            id=EventId(""),
            at=0.0,
            model=self.model,
            response=self.id,
            uncached=prompt - cached,
            cache_read=cached,
            cache_write=written,
            output=output,
        )

    @property
    def is_call(self) -> bool:
        """Whether the response has more than thinking; otherwise it was interrupted, and nothing of it was sent
        back."""
        return not all(isinstance(block, AssistantThinking) for block in self.blocks)

    def items(self) -> Iterator[Item]:
        if self.is_call:
            yield Responded(
                at=self.at,
                id=self.id,
                blocks=tuple(self.blocks),
                model=self.model,
                usage=self.usage,
            )
        # Results come first, because providers require them directly after their calls.
        yield from self.results
        yield from self.arrived
