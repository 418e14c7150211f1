"""From what people have in hand (texts, tool output) to typed blocks."""

import attrs

from blocks import (
    BlockId,
    CallId,
    Envelope,
    ToolResult,
    TurnId,
)
from timeline.arguments._given import Output, output_parts
from timeline.engine._ids import IdFactory


@attrs.frozen(kw_only=True)
class Recorder:
    """Makes blocks of one turn."""

    ids: IdFactory
    turn: TurnId

    def new_id(self) -> BlockId:
        """The next block id."""
        return BlockId(self.ids())

    def result(
        self, call_id: str, output: Output, envelope: Envelope, *, is_error: bool
    ) -> ToolResult:
        """A tool's output: a text, or parts (ours, or content blocks of the provider's)."""
        return ToolResult(
            id=self.new_id(),
            turn=self.turn,
            call_id=CallId(call_id),
            parts=output_parts(output, "tool_result()"),
            is_error=is_error,
            envelope=envelope,
        )
