"""A log as the items that a session of the OpenAI Agents SDK holds: each as it was given, whatever was folded since."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CallId,
    DocumentPart,
    ImagePart,
    OpaqueBlock,
    Part,
    ProviderPart,
    Recorded,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
)
from blocks.formats import client_call, client_result, obj, spelled
from render import Json

FAKE_ID: Final = "__fake_id__"
"""The id that the SDK gives to a message without one; it is sent to no API."""
_TAG: Final = "provider.openai."


def items_of(log: Sequence[Recorded]) -> Iterator[Json]:
    """The items of a conversation, as they were given."""
    hidden: dict[BlockId, str] = {}
    for _, event in log:
        if isinstance(event, BlocksHidden) and event.reason == "requested":
            hidden |= {each.block: each.replacement for each in event.hidden}
        elif isinstance(event, BlocksRestored):
            hidden = {name: text for name, text in hidden.items() if name not in event.blocks}
    calls: dict[CallId, ToolCall] = {}
    for block in (event.block for _, event in log if isinstance(event, BlockAppended)):
        shown = block if (text := hidden.get(block.id)) is None else _replaced(block, text)
        if isinstance(shown, ToolCall):
            calls[shown.call_id] = shown
        item = _returned(shown, calls) if isinstance(shown, ToolResult) else shown and _item(shown)
        own = getattr(block, "response", "") != block.source and block.source
        if item:
            yield {**item, **({"id": own} if own else {})}


def _item(block: Block) -> Json | None:
    """The item of a block other than a result; None: it is none of the SDK's."""
    match block:
        case UserPrompt() | UserSteer() | UserFollowup():
            parts = (TextPart(text=block.text), *block.parts) if block.text else block.parts
            listed = list(map(_content, parts)) if block.parts else block.text
            return {"role": "user", "content": listed}
        case UserAttachment():
            return {"role": "user", "content": [_content(block.part)]}
        case SystemMessage():
            return {"role": block.role or "developer", "content": block.text}
        case AssistantCompletion():
            part: Json = {"type": "output_text", "text": block.text, "annotations": []}
            head = {"id": FAKE_ID, "type": "message", "role": "assistant"}
            return {**head, **block.provider, "status": "completed", "content": [part]}
        case AssistantThinking(provider={"type": "reasoning"} as own):
            return own
        case OpaqueBlock() if block.tag.startswith(_TAG):
            return obj(block.fields.get("value")) or None
        case ToolCall():
            return client_call(block, block.call_id) or _call(block)
        case _:
            return None


def _call(call: ToolCall) -> Json:
    named = {"call_id": call.call_id, "name": call.name}
    if _is_custom(call):
        return {"type": "custom_tool_call", **named, "input": call.input.get("input")}
    arguments = call.provider.get("arguments", spelled(call.input))
    return {"type": "function_call", **named, "arguments": arguments}


def _returned(result: ToolResult, calls: Mapping[CallId, ToolCall]) -> Json:
    call, call_id = calls.get(result.call_id), result.call_id
    item = call and client_result(call, call_id, result.parts, is_error=result.is_error)
    if item:
        return item
    is_text = all(isinstance(part, TextPart) for part in result.parts)
    output = text_of(result) if is_text else list(map(_content, result.parts))
    kind = "custom_tool_call_output" if call and _is_custom(call) else "function_call_output"
    return {"type": kind, "call_id": call_id, "output": output}


def _is_custom(call: ToolCall) -> bool:
    return bool(call.provider.get("type") == "custom")


def _replaced(block: Block, text: str) -> Block | None:
    """What is shown of a block that is hidden on request."""
    match block:
        case ToolCall():
            return replace(block, input={"hidden": text}, provider={})
        case ToolResult():
            return replace(block, parts=(TextPart(text=text),))
        case AssistantCompletion() | SystemMessage():
            return replace(block, text=text)
        case UserPrompt() | UserSteer() | UserFollowup():
            return replace(block, text=text, parts=())
        case UserAttachment():
            return replace(block, part=TextPart(text=text))
        case _:
            return None


def _content(part: Part) -> Json:
    match part:
        case TextPart():
            return {"type": "input_text", "text": part.text}
        case ImagePart():
            url = part.url or f"data:{part.media_type};base64,{part.data}"
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case DocumentPart() if part.url:
            return {"type": "input_file", "file_url": part.url}
        case DocumentPart():
            data = f"data:{part.media_type};base64,{part.data}"
            return {"type": "input_file", "filename": part.name or "file", "file_data": data}
        case ProviderPart():
            return part.value
