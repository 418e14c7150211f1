"""Strands Agents: a conversation manager that sends what a timeline renders, instead of cutting the agent's messages.

Before each model call the agent's messages are synced, and the rendered ones are given to the model in their place; its
answer is recorded with its usage when the stream ends.  The agent keeps all its messages.
"""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import groupby
from typing import Any, Final

from blocks import DocumentPart, ImagePart, ProviderPart, TextPart
from blocks.formats import Call, ModelText, Result, Thought, obj, objs, plain, spelled, string
from render import Json, Rendered
from timeline.integrations._conversation import (
    AnyTimeline,
    Conversation,
    finished,
    lacking,
    timeline_for,
)
from timeline.integrations._pieces import ContentPiece, pieces_of

try:
    from strands.agent.conversation_manager import ConversationManager
    from strands.event_loop.streaming import process_stream
    from strands.hooks import AfterInvocationEvent, AgentInitializedEvent, HookRegistry
    from strands.models import Model
except ModuleNotFoundError as error:
    raise lacking("strands-agents", error) from error

_FORMAT: Final = "anthropic"
_APART: Final = ("strands.models.anthropic", "strands.models.bedrock")
"""Models whose count of the input does not have the tokens from the cache in it."""
_OVERFLOWS_MAX: Final = 2
"""Times that one prompt is compacted because it was too long."""


class TimelineConversationManager(ConversationManager):
    """A conversation manager for `Agent(..., conversation_manager=TimelineConversationManager(timeline))`; it serves one
    agent.

    Requests are rendered for the model that is called, also if it is not the timeline's. An agent that begins without
    messages continues the timeline; one that begins with messages must have the whole conversation.
    """

    def __init__(self, timeline: AnyTimeline) -> None:
        super().__init__()
        self._conversation = Conversation(timeline)
        self._system = ""
        self._overflows = 0

    @property
    def timeline(self) -> Any:
        """The timeline with which the agent continues; a fork of it, if the agent's messages were edited."""
        return self._conversation.timeline

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Take over the agent's model, and sync what a run ends with."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._begin)
        registry.add_callback(AfterInvocationEvent, self._end)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Nothing: the agent keeps its messages, and each request is rendered."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Compact the timeline before the next request.

        Raises:
            Exception: `e`, if the prompt was compacted before and is still too long.
        """
        if e is not None and self._overflows >= _OVERFLOWS_MAX:
            raise e
        self._overflows += 1

    def _begin(self, event: AgentInitializedEvent) -> None:
        model = event.agent.model
        event.agent.model = copy(model)
        vars(event.agent.model)["stream"] = partial(_stream, self, model)

    async def _end(self, event: AfterInvocationEvent) -> None:
        if self._conversation.after is not None:
            await self._sync(event.agent.messages)

    async def _sync(self, messages: Sequence[Any]) -> None:
        if self._conversation.after is None:
            await self._conversation.begin(is_new=len(messages) == 1)
        await self._conversation.sync([_message(one) for one in messages], _FORMAT)

    async def rendered(
        self, name: str, messages: Sequence[Any], system: str, tools: Sequence[Json]
    ) -> tuple[Any, Rendered]:
        """The next request, and the timeline for the model of this name."""
        await self._sync(messages)
        timeline = timeline_for(self.timeline, name)
        render = timeline.compact if self._overflows else timeline.render
        return timeline, await finished(render(system=system, tools=tools))

    async def record(self, timeline: Any, rendered: Rendered, answer: Json) -> None:
        """Record the model's answer."""
        self._overflows = 0
        await finished(timeline.record(answer, rendered, format=_FORMAT))


async def _stream(
    manager: TimelineConversationManager,
    model: Model,
    /,
    messages: Any,
    tool_specs: Any = None,
    system_prompt: Any = None,
    **more: Any,
) -> AsyncIterator[Any]:
    """The model's answer to the timeline's request."""
    tools = [_tool(spec) for spec in tool_specs or ()]
    prompt = system_prompt or "\n\n".join(
        string(block.get("text")) for block in objs(plain(more.get("system_prompt_content") or []))
    )
    name = string(obj(plain(model.get_config())).get("model_id"))
    timeline, rendered = await manager.rendered(name, messages, prompt, tools)
    chunks = list[Any]()
    async for chunk in model.stream(messages_of(rendered), tool_specs, system_prompt, **more):
        chunks.append(chunk)
        yield chunk
    if any("messageStop" in chunk for chunk in chunks):
        answer = await _answer(chunks, is_apart=type(model).__module__ in _APART)
        await manager.record(timeline, rendered, answer)


async def _answer(chunks: Sequence[Any], *, is_apart: bool) -> Json:
    """The response that these chunks are."""

    async def again() -> AsyncIterator[Any]:
        for chunk in chunks:
            yield chunk

    stop, message, used = "end_turn", obj(None), obj(None)
    async for event in process_stream(again()):
        if "stop" in event:
            stop, message, used = event["stop"][0], event["stop"][1], plain(event["stop"][2])
    read, written = used.get("cacheReadInputTokens") or 0, used.get("cacheWriteInputTokens") or 0
    usage = {
        "input_tokens": used.get("inputTokens", 0) - (0 if is_apart else read + written),
        "output_tokens": used.get("outputTokens", 0),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    is_told = any(usage.values())
    return {
        "type": "message",
        **_message(message),
        "stop_reason": stop,
        **({"usage": usage} if is_told else {}),
    }


def _tool(spec: Any) -> Json:
    """The tool's definition in a common form; here it is only counted."""
    definition = obj(plain(spec))
    return {
        "name": definition.get("name"),
        "description": string(definition.get("description")),
        "input_schema": obj(obj(definition.get("inputSchema")).get("json")),
    }


# Messages of Strands in the form of the Messages API.


def _message(message: Any) -> Json:
    blocks = [block for content in message["content"] for block in _block(content)]
    return {"role": message["role"], "content": blocks}


def _block(content: Any) -> Iterator[Json]:
    match content:
        case {"text": str() as text}:
            yield {"type": "text", "text": text}
        case {"toolUse": called}:
            call = {"id": called["toolUseId"], "name": called["name"], "input": called["input"]}
            yield {"type": "tool_use", **call}
        case {"toolResult": result}:
            inner = [block for one in result["content"] for block in _block(one)]
            failed = {"is_error": result.get("status") == "error"}
            own = {"tool_use_id": result["toolUseId"], "content": inner}
            yield {"type": "tool_result", **own, **failed}
        case {"json": value}:
            yield {"type": "text", "text": spelled(plain(value))}
        case {"image": {"format": form, "source": {"bytes": data}}}:
            source = {"type": "base64", "media_type": f"image/{form}", "data": _base64(data)}
            yield {"type": "image", "source": source}
        case {"document": {"format": "pdf", "source": {"bytes": data}} as document}:
            source = {"type": "base64", "media_type": "application/pdf", "data": _base64(data)}
            yield {"type": "document", "source": source, "title": document.get("name")}
        case {"document": {"source": {"bytes": data}} as document}:
            text = bytes(data).decode(errors="replace")
            source = {"type": "text", "media_type": "text/plain", "data": text}
            yield {"type": "document", "source": source, "title": document.get("name")}
        case {"reasoningContent": {"reasoningText": {"text": text} as thought}}:
            yield {"type": "thinking", "thinking": text, "signature": thought.get("signature", "")}
        case {"reasoningContent": {"redactedContent": data}}:
            yield {"type": "redacted_thinking", "data": bytes(data).decode()}
        case {"cachePoint": _}:
            pass
        case _:
            kind = next(iter(content), "part")
            yield {"type": kind, **obj(plain(content.get(kind)))}


def _base64(data: Any) -> str:
    return b64encode(bytes(data)).decode()


# A request as messages of Strands.


def messages_of(rendered: Rendered) -> list[Any]:
    """The messages of a request without the system prompt, for a model that you call yourself."""
    messages = list[Json]()
    pieces = (piece for piece in pieces_of(rendered) if piece.role != "system")
    for is_answer, group in groupby(pieces, lambda piece: piece.role == "assistant"):
        role = "assistant" if is_answer else "user"
        content = [block for piece in group for block in _content(piece)]
        if content:
            messages.append({"role": role, "content": content})
    return messages


def _content(piece: ContentPiece) -> Iterator[Json]:
    match piece.content:
        case ModelText(text=text):
            yield {"text": text}
        case Call() as call:
            yield {"toolUse": {"toolUseId": call.call_id, "name": call.name, "input": call.input}}
        case Result() as result:
            inner = [_part(part) for part in result.parts]
            status = "error" if result.is_error else "success"
            yield {"toolResult": {"toolUseId": result.call_id, "status": status, "content": inner}}
        case Thought(value={"type": "thinking", "thinking": text, "signature": seal}):
            yield {"reasoningContent": {"reasoningText": {"text": text, "signature": seal}}}
        case Thought(value={"type": "redacted_thinking", "data": data}):
            yield {"reasoningContent": {"redactedContent": str(data).encode()}}
        case TextPart() | ImagePart() | DocumentPart() | ProviderPart() as part:
            yield _part(part)
        case _:
            return
    if "cache_control" in piece.mark:
        yield {"cachePoint": {"type": "default"}}


def _part(part: Any) -> Json:
    match part:
        case TextPart():
            return {"text": part.text}
        case ImagePart(url=""):
            form = part.media_type.partition("/")[2]
            return {"image": {"format": form, "source": {"bytes": b64decode(part.data)}}}
        case DocumentPart(media_type="text/plain"):
            source = {"bytes": part.data.encode()}
            return {"document": {"format": "txt", "name": part.name or "file", "source": source}}
        case DocumentPart(url=""):
            source = {"bytes": b64decode(part.data)}
            return {"document": {"format": "pdf", "name": part.name or "file", "source": source}}
        case ImagePart() | DocumentPart():
            return {"text": part.url}
        case _:
            return {"text": spelled(part.value)}
