"""Microsoft's Agent Framework: a chat middleware that sends what a timeline renders to the agent's client.

Before each model call the messages are synced, and the rendered ones take their place; the answer is recorded with its
usage. The session, and whatever keeps its history, stays as it is.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, Final

import attrs

from blocks import DocumentPart, ImagePart, ProviderPart, TextPart
from blocks.formats import Call, ModelText, Result, Thought, obj, objs, plain, spelled, string
from render import Json, Rendered
from timeline.integrations._conversation import (
    AnyTimeline,
    Conversation,
    finished,
    lacking,
    timeline_for,
    timeline_of,
)
from timeline.integrations._pieces import ContentPiece, pieces_of

try:
    from agent_framework import ChatContext, ChatMiddleware, ChatResponse, Content, Message
except ModuleNotFoundError as error:
    raise lacking("agent-framework", error) from error

_FORMAT: Final = "openai.responses"
_APIS: Final = {
    "RawOpenAIChatClient": "openai.responses",
    "RawOpenAIChatCompletionClient": "openai.chat",
}
"""The clients that send a request as it was rendered, by the names of their classes, with their APIs."""


@attrs.define(eq=False)
class _SessionConversation(Conversation):
    """The conversation of a session."""

    history: list[Json] = attrs.field(factory=list[Json])
    """The newest history."""


class TimelineMiddleware(ChatMiddleware):
    """A middleware for `Agent(..., middleware=[..., TimelineMiddleware(timeline)])`. It must be the last in the list, so
    that it sees the messages as they would be sent.

    Requests are rendered for the model that is called, also if it is not the timeline's. OpenAI's clients send them as
    they were rendered; to any other client they are given as messages, see `messages_of`. A run without a history
    continues the timeline; a history must have the whole conversation. Nothing is stored by OpenAI (`store=False`).

    Args:
        timeline: The conversation. For many, a function from the session's id to a timeline; it is called once for each
            session.
    """

    def __init__(self, timeline: AnyTimeline | Callable[[str], AnyTimeline]) -> None:
        self._timeline = timeline
        self._sessions: dict[str, _SessionConversation] = {}

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Sync the messages, put the rendered ones in their place, and record the answer."""
        session = self._of(context.session.session_id if context.session else "")
        prompts = [message.text for message in context.messages if message.role == "system"]
        await self._sync(session, [one for one in context.messages if one.role != "system"])
        options: Json = dict(context.options or {})
        name = options.get("model") or getattr(context.client, "model", "")
        names = {kind.__name__ for kind in type(context.client).__mro__}
        apis = [api for kind, api in _APIS.items() if kind in names]
        timeline = timeline_for(session.timeline, string(name), apis)
        system = "\n\n".join(text for text in (*prompts, options.get("instructions")) if text)
        tools = [*map(_tool, options.get("tools") or ())]
        rendered = await finished(timeline.render(system=system, tools=tools))
        system_messages = [one for one in context.messages if one.role == "system"]
        context.messages = [*system_messages, *messages_of(rendered)]
        options.pop("conversation_id", None)
        if apis:
            body = {**(options.get("extra_body") or {}), **_body(rendered)}
            options |= {"extra_body": body, "store": False}
        context.options = options

        async def record(response: Any) -> Any:
            await finished(timeline.record(_answer(response), rendered, format=_FORMAT))
            return response

        if context.stream:
            context.stream_result_hooks.append(record)
        await call_next()
        if isinstance(context.result, ChatResponse):
            await record(context.result)

    async def _sync(self, session: _SessionConversation, messages: Sequence[Message]) -> None:
        history = [item for message in messages for item in _items(message)]
        is_new = all(item.get("role") == "user" for item in history) and history != session.history
        if session.after is None or is_new:
            await session.begin(is_new=is_new)
        session.history = history
        await session.sync(history, _FORMAT)

    def _of(self, name: str) -> _SessionConversation:
        if name not in self._sessions:
            self._sessions[name] = _SessionConversation(timeline_of(self._timeline, name))
        return self._sessions[name]


def _body(rendered: Rendered) -> Json:
    """The part of the HTTP request that takes the place of the framework's; its tools are kept."""
    request = rendered.request()
    request.pop("tools", None)
    return {**request, "instructions": None} if "input" in request else request


def _tool(tool: Any) -> Json:
    """The tool's definition in a common form; here it is only counted."""
    spec = getattr(tool, "to_json_schema_spec", None)
    return obj(plain(spec() if spec else tool))


def _answer(response: ChatResponse[Any]) -> Json:
    """The response in the form of the Responses API."""
    items = [item for message in response.messages for item in _items(message)]
    used: Mapping[str, Any] = response.usage_details or {}
    written, read = (
        used.get(f"cache_{name}_input_token_count") or 0 for name in ("creation", "read")
    )
    usage = {
        "input_tokens": used.get("input_token_count") or 0,
        "output_tokens": used.get("output_token_count") or 0,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
    }
    is_cut_off = response.finish_reason == "length"
    return {
        "id": response.response_id,
        "output": items,
        "status": "incomplete" if is_cut_off else "completed",
        **({"usage": usage} if used else {}),
    }


# Messages of the framework as items of the Responses API.


def _items(message: Message) -> Iterator[Json]:
    """The items of a message: texts and files of one role are one item."""
    parts = list[Json]()
    for content in message.contents:
        item = _item(content)
        if item is None:
            parts += _parts(content, message.role)
            continue
        if parts:
            yield {"type": "message", "role": message.role, "content": parts}
            parts = []
        yield item
    if parts:
        yield {"type": "message", "role": message.role, "content": parts}


def _item(content: Content) -> Json | None:
    """The item that a content is by itself; None: it is a part of a message."""
    match content.type:
        case "function_call":
            raw: Any = content.arguments or "{}"
            arguments = raw if isinstance(raw, str) else json.dumps(raw)
            call = {"call_id": content.call_id, "name": content.name, "arguments": arguments}
            return {"type": "function_call", **call}
        case "function_result":
            inner = [part for one in content.items or () for part in _parts(one, "user")]
            output: Any = inner or string(content.result)
            return {"type": "function_call_output", "call_id": content.call_id, "output": output}
        case "text_reasoning":
            text = [{"type": "summary_text", "text": content.text}] if content.text else []
            own = {"id": content.id, "summary": text, "encrypted_content": content.protected_data}
            return {"type": "reasoning", **{name: value for name, value in own.items() if value}}
        case _:
            return None


def _parts(content: Content, role: str) -> Iterator[Json]:
    match content.type:
        case "text":
            kind = "output_text" if role == "assistant" else "input_text"
            yield {"type": kind, "text": content.text}
        case "data" | "uri" if string(content.media_type).startswith("image/"):
            yield {"type": "input_image", "image_url": content.uri}
        case "data":
            yield {"type": "input_file", "filename": "file", "file_data": content.uri}
        case "uri":
            yield {"type": "input_file", "file_url": content.uri}
        case "usage":
            pass
        case kind:
            yield {"type": kind, **obj(plain(content.to_dict()))}


# A request as messages of the framework.


def messages_of(rendered: Rendered) -> list[Message]:
    """The messages of a request without the system prompt, for a client that you call yourself."""
    messages = list[Message]()
    pieces = (piece for piece in pieces_of(rendered) if piece.role != "system")
    for role, group in groupby(pieces, lambda piece: piece.role):
        contents = [content for piece in group for content in _contents(piece)]
        if contents:
            messages.append(Message(role, contents))
    return messages


def _contents(piece: ContentPiece) -> Iterator[Content]:
    match piece.content:
        case ModelText(text=text):
            yield Content.from_text(text)
        case Call() as call:
            arguments = string(call.provider.get("arguments")) or spelled(call.input)
            yield Content.from_function_call(call.call_id, call.name, arguments=arguments)
        case Result() as result:
            parts = [_part(part) for part in result.parts]
            yield Content.from_function_result(result.call_id, result=parts)
        case Thought(value={"type": "reasoning", "encrypted_content": str() as seal} as value):
            own = string(value.get("id")) or f"rs_{sha256(seal.encode()).hexdigest()[:32]}"
            texts = [string(part.get("text")) for part in objs(value.get("summary"))]
            thought = "\n".join(texts) or None
            yield Content.from_text_reasoning(id=own, text=thought, protected_data=seal)
        case TextPart() | ImagePart() | DocumentPart() | ProviderPart() as part:
            yield _part(part)
        case _:
            pass


def _part(part: Any) -> Content:
    match part:
        case TextPart():
            return Content.from_text(part.text)
        case DocumentPart(media_type="text/plain"):
            return Content.from_text(part.data)
        case ImagePart() | DocumentPart():
            url = part.url or f"data:{part.media_type};base64,{part.data}"
            return Content.from_uri(url, media_type=part.media_type)
        case _:
            return Content.from_text(spelled(part.value))
