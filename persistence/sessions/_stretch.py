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
"""Stands for the id until all blocks have their place."""


@attrs.define(eq=False)
class Asked:
    """A call of the response."""

    call: ToolCall
    at: float = 0.0
    """When it was logged; 0: the log does not say."""


@attrs.define(eq=False)
class Stretch:
    """A response, the results of its calls (whenever they were logged), and what else arrived."""

    id: str
    turn: TurnId
    at: float
    until: float = math.inf
    """When the next response was asked for."""
    model: str = ""
    usage: UsageRecorded | None = None
    blocks: list[Block] = attrs.field(factory=list[Block])
    results: list[Arrived] = attrs.field(factory=list[Arrived])
    arrived: list[Arrived] = attrs.field(factory=list[Arrived])
    _asked: dict[CallId, Asked] = attrs.field(factory=dict[CallId, Asked], init=False)

    def say(self, text: str) -> None:
        """Text of the model; blank text is ignored."""
        if text.strip():
            block = AssistantCompletion(id=NEW, turn=self.turn, response=self.id, text=text)
            self.blocks.append(block)

    def call(self, call_id: CallId, name: str, tool_input: Json) -> Asked:
        """The response asks for a tool."""
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
        """One of its calls has a result."""
        asked = self._asked[call_id]
        block = ToolResult(
            id=NEW,
            turn=self.turn,
            call_id=call_id,
            parts=returned.parts,
            is_error=returned.is_error,
            envelope=returned.envelope(asked.call, asked.at, at),
        )
        # A late result goes back to its call, and then it was there before the next response.
        at = max(min(at, self.until), self.at)
        self.results.append(Arrived(at=at, blocks=(block,)))

    def think(self, provider: Json) -> None:
        """A thinking block, as the provider sent it."""
        self.blocks.append(
            AssistantThinking(id=NEW, turn=self.turn, response=self.id, provider=provider)
        )

    def spent(self, prompt: int, cached: int, output: int, written: int = 0) -> UsageRecorded:
        """What the response cost; the prompt is without what was written to the cache, and includes
        what was read from it."""
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
        """Thinking alone is a response that broke off: nothing of it was ever sent back."""
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
        # Results first: a provider wants them directly behind their calls.
        yield from self.results
        yield from self.arrived
