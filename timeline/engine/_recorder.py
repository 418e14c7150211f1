"""From what people have in hand (texts, responses, tool output) to typed blocks."""

from typing import Any, Final, cast

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CallId,
    CodecError,
    Envelope,
    OpaqueBlock,
    ToolCall,
    ToolResult,
    TurnId,
    clean_json,
    fault_in,
)
from timeline.arguments._given import Output, output_parts
from timeline.arguments._responses import message_of
from timeline.engine._ids import IdFactory

_CUT_OFF: Final = frozenset({"max_tokens", "model_context_window_exceeded"})


@attrs.frozen(kw_only=True)
class Recorder:
    """Makes blocks of one turn."""

    ids: IdFactory
    turn: TurnId

    def new_id(self) -> BlockId:
        """The next block id."""
        return BlockId(self.ids())

    def response(self, response: object) -> list[Block]:
        """The blocks of an Anthropic message (the SDK's object, or its JSON).

        A tool call at the end of an answer that was cut off is discarded: its input may be cut
        anywhere.  (Provider documentation: handling stop reasons.)

        Raises:
            MisuseError: it is no such message.
            CodecError: it holds what cannot be stored; it says where.
        """
        message = message_of(response)
        contents: list[dict[str, Any]] = message["content"]
        if message.get("stop_reason") in _CUT_OFF and contents:
            contents = contents[: -1 if contents[-1].get("type") == "tool_use" else None]
        for index, content in enumerate(contents):
            if fault := fault_in(content):
                raise CodecError(f"cannot record the response: in content.{index}, {fault}")
        return [self.content(content, message.get("id") or "") for content in contents]

    def content(self, content: dict[str, Any], response: str) -> Block:
        """The block of one content block."""
        match content["type"]:
            case "text":
                text: str = content["text"]
                return AssistantCompletion(
                    id=self.new_id(), turn=self.turn, response=response, text=text
                )
            case "thinking" | "redacted_thinking":
                return AssistantThinking(
                    id=self.new_id(), turn=self.turn, response=response, provider=content
                )
            case "tool_use":
                return ToolCall(
                    id=self.new_id(),
                    turn=self.turn,
                    response=response,
                    call_id=CallId(content["id"]),
                    name=content["name"],
                    input=_arguments(content.get("input")),
                )
            case kind:  # the provider's own: a server tool's traffic, its compaction
                fields = {"id": self.new_id(), "turn": self.turn, "author": "assistant"}
                known = {"response": response, "value": content}
                return OpaqueBlock(f"provider.{kind}", {**fields, **known})

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


def _arguments(value: object) -> dict[str, Any]:
    """A call's arguments; what is no object (some models write a text) becomes one.

    Raises:
        CodecError: they are nested too deeply.
    """
    try:
        cleaned = clean_json(value or {})
    except RecursionError:
        raise CodecError("record(): the input of a tool call is nested too deeply") from None
    return cast("dict[str, Any]", cleaned) if isinstance(cleaned, dict) else {"input": cleaned}
