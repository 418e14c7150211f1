"""From what people have in hand (texts, responses, tool output) to typed blocks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    CallId,
    DocumentPart,
    Envelope,
    EventId,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    Part,
    ProviderPart,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UsageRecorded,
    clean_json,
)
from timeline._ids import IdFactory

_CUT_OFF: Final = frozenset({"max_tokens", "model_context_window_exceeded"})

Output: TypeAlias = "str | Sequence[Part | Mapping[str, Any]]"


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
        """
        message = as_json(response)
        found = cast("list[object]", message.get("content") or [])
        contents = [cast("dict[str, Any]", c) for c in found if isinstance(c, dict)]
        if message.get("stop_reason") in _CUT_OFF and contents:
            contents = contents[: -1 if contents[-1].get("type") == "tool_use" else None]
        blocks = (self._content(c, str(message.get("id", ""))) for c in contents)
        return [block for block in blocks if block is not None]

    def _content(self, content: dict[str, Any], response: str) -> Block | None:
        match content.get("type"):
            case "text":
                text = str(content.get("text") or "")
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
                    call_id=CallId(str(content.get("id", ""))),
                    name=str(content.get("name", "")),
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
            parts=parts_of(output),
            is_error=is_error,
            envelope=envelope,
        )


def _arguments(value: object) -> dict[str, Any]:
    """A call's arguments; what is no object (some models write a text) becomes one."""
    cleaned = clean_json(value or {})
    return cast("dict[str, Any]", cleaned) if isinstance(cleaned, dict) else {"input": cleaned}


def parts_of(output: Output) -> tuple[Part, ...]:
    """Parts of whatever a tool returned.

    Raises:
        MisuseError: an item is neither a part nor a content block.
    """
    if isinstance(output, str):
        return (TextPart(text=output),) if output else ()
    return tuple(_parts(output))


def _parts(output: Iterable[Part | Mapping[str, Any]]) -> Iterable[Part]:
    for item in output:
        if isinstance(item, Part):
            yield item
        elif isinstance(item, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
            yield _foreign(item)
        else:
            raise MisuseError(
                f"a tool's output is a text, or a list of parts or content blocks, "
                f"not a list with {type(item).__name__}"
            )


def _foreign(content: Mapping[str, Any]) -> Part:
    source: Mapping[str, Any] = content.get("source") or {}
    where = {"data": str(source.get("data", "")), "url": str(source.get("url", ""))}
    match content.get("type"):
        case "text":
            return TextPart(text=str(content.get("text", "")))
        case "image":
            return ImagePart(media_type=str(source.get("media_type", "image/png")), **where)
        case "document":
            kind = str(source.get("media_type", "application/pdf"))
            return DocumentPart(media_type=kind, name=str(content.get("title") or ""), **where)
        case _:
            return ProviderPart(value=dict(content))


def usage_of(response: object, *, at: float, estimated: int) -> UsageRecorded | None:
    """What an Anthropic message says about its cost, if it says anything."""
    message = as_json(response)
    usage: Mapping[str, Any] = message.get("usage") or {}
    if not usage:
        return None

    def number(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) else 0

    return UsageRecorded(
        id=EventId(""),
        at=at,
        model=str(message.get("model", "")),
        response=str(message.get("id", "")),
        uncached=number("input_tokens"),
        cache_read=number("cache_read_input_tokens"),
        cache_write=number("cache_creation_input_tokens"),
        output=number("output_tokens"),
        estimated=estimated,
    )


def as_json(response: object) -> dict[str, Any]:
    """The JSON of an SDK object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        MisuseError: it is neither.
    """
    if isinstance(response, Mapping):
        return dict(cast("Mapping[str, Any]", response))
    for name in ("to_dict", "model_dump"):
        dump = getattr(response, name, None)
        if callable(dump):
            # The SDK's models complain about content that they do not know; we keep it as it is.
            is_sdk = name == "to_dict" and hasattr(response, "model_dump")
            return cast("dict[str, Any]", dump(warnings=False) if is_sdk else dump())
    raise MisuseError(
        f"a response is an Anthropic message or its JSON, not {type(response).__name__}"
    )
