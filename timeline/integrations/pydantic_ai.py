"""Pydantic AI: a capability that sends what a timeline renders, instead of the run's whole history, and the messages of a
request for a program that calls the model itself.

The run's messages are synced before each model call and at the end of the run. The request is rendered for the model
that is called, and sent in place of Pydantic AI's messages: in the body of the HTTP request, where the vendor's client
takes one; to other models, test models among them, as messages.  The model's answer is recorded with its usage.  The
run's own history does not change.
"""

from base64 import b64decode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import DocumentPart, ImagePart, ProviderPart, TextPart
from blocks.formats import Call, ModelText, Result, Thought, Verbatim, objs, spelled, string
from render import Json, Rendered
from timeline.integrations._conversation import (
    AnyTimeline,
    finished,
    lacking,
    timeline_for,
)
from timeline.integrations._pieces import SEAL, ContentPiece, names_of, pieces_of

try:
    from pydantic_ai import (
        AgentRunResult,
        BinaryContent,
        CachePoint,
        DocumentUrl,
        ImageUrl,
        ModelMessage,
        ModelRequest,
        ModelResponse,
        RunContext,
        SystemPromptPart,
        ThinkingPart,
        ToolCallPart,
        ToolDefinition,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai import TextPart as TextOfModel
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models import (
        Model,
        ModelRequestContext,
        ModelRequestParameters,
        StreamedResponse,
    )
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
except ModuleNotFoundError as error:
    raise lacking("pydantic-ai", error) from error

Request: TypeAlias = tuple[list[ModelMessage], ModelSettings | None, ModelRequestParameters]
_FORMAT: Final = "pydantic_ai"
_CHANGE: Final = "model-settings-delta"
_APIS: Final[Mapping[type[Model[Any]], str]] = {
    AnthropicModel: "anthropic",
    OpenAIResponsesModel: "openai.responses",
    OpenAIChatModel: "openai.chat",
}
"""The models that send a request as it was rendered, with their APIs."""
_VENDORS: Final = {
    "anthropic": "anthropic",
    "openai.chat": "openai",
    "openai.responses": "openai",
    "gemini": "google",
}
"""What Pydantic AI calls the vendor of each API."""
_OWN_MARKS: Final[Json] = {
    "cache": False,
    "anthropic_cache": False,
    "anthropic_cache_tool_definitions": False,
}
"""Settings that stop Pydantic AI from setting cache marks in addition to the timeline's."""


@attrs.define(eq=False)
class TimelineCapability(AbstractCapability[Any]):
    """A capability for `Agent(..., capabilities=[TimelineCapability(timeline)])`; it serves one conversation.

    Requests are rendered for the model that is called, also if it is not the timeline's, such as a fallback. Models of
    Anthropic and of OpenAI's two APIs send them as they were rendered; to any other model they are given as messages, see
    `messages_of`. A run without `message_history` continues the timeline. A `message_history` must have the whole
    conversation; if it was edited, the run continues in a fork.
    """

    timeline: AnyTimeline
    """The timeline with which the run continues; with a `Timeline`, its short commits block the event loop."""
    _begun: str | None = attrs.field(default=None, init=False)
    """Id of the run with which the history begins; None: no run yet."""
    _after: int = attrs.field(default=0, init=False)
    """Version of the timeline after which the history begins."""
    _system: str = attrs.field(default="", init=False)
    """The system prompt in the history."""
    _newest: tuple[Any, Rendered] | None = attrs.field(default=None, init=False)
    """The newest request, and the timeline for the model to which it was sent; None: none yet."""

    def get_ordering(self) -> CapabilityOrdering:
        """Make this the innermost capability, so that it syncs the messages as the others have changed them."""
        return CapabilityOrdering(position="innermost")

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Find the version of the timeline after which the run's history begins."""
        begun = ctx.messages[0].run_id if ctx.messages else ctx.run_id
        if not ctx.messages:
            await finished(self.timeline.close_calls())  # calls that a crashed process left open
            self._after = self.timeline.version
        elif begun != self._begun:
            self._after = 0
        self._begun = begun

    async def after_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        *,
        result: AgentRunResult[Any],
    ) -> AgentRunResult[Any]:
        """Sync the messages that were in no request, such as the result of a tool that ends the run."""
        await self._sync(result.all_messages())
        return result

    async def prepare_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Sync the messages."""
        self._system = await self._sync(request_context.messages)
        return request_context

    def get_wrapper_model(self, model: Model[Any]) -> Model[Any]:
        """The model, asked with the timeline's requests."""
        return _TimelineModel(model, self)

    async def request(
        self,
        model: Model[Any],
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> Request:
        """The arguments of a request of this model that sends what is rendered for it."""
        api = next((api for kind, api in _APIS.items() if isinstance(model, kind)), "")
        timeline = timeline_for(self.timeline, model.model_name, (api,) if api else ())
        _, final = model.prepare_request(settings, parameters)
        prompts = [self._system, final.prompted_output_instructions if api else ""]
        tools = [_tool(tool) for tool in final.declared_tool_defs.values()]
        system = "\n\n".join(text for text in prompts if text)
        rendered = await finished(timeline.render(system=system, tools=tools))
        self._newest = timeline, rendered
        if not api:
            return messages_of(rendered), settings, replace(parameters, instruction_parts=None)
        request = rendered.request()
        request.pop("tools", None)
        if "input" in request:
            request["instructions"] = None  # they are the first item of the input
        merged: Any = {**(settings or {}), **_OWN_MARKS}
        merged["extra_body"] = {**(merged.get("extra_body") or {}), **request}
        return [*map(_without_changes, messages)], cast("ModelSettings", merged), parameters

    async def after_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        *,
        request_context: ModelRequestContext,  # noqa: ARG002
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the model's answer."""
        if self._newest:
            timeline, rendered = self._newest
            await finished(timeline.record(response, rendered, format=_FORMAT))
        return response

    async def _sync(self, messages: Sequence[ModelMessage]) -> str:
        synced: Any = await finished(
            self.timeline.sync(messages, format=_FORMAT, after=self._after, on_divergence="fork")
        )
        self.timeline = synced.timeline
        return cast("str", synced.system)


class _TimelineModel(WrapperModel):
    """A model that is asked with the timeline's requests: one that calls others, such as a fallback, by each of them."""

    def __init__(self, wrapped: Model[Any], capability: TimelineCapability) -> None:
        super().__init__(wrapped)
        self._capability = capability

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        model, arguments = await self._sent(messages, model_settings, model_request_parameters)
        return await model.request(*arguments)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        model, arguments = await self._sent(messages, model_settings, model_request_parameters)
        async with model.request_stream(*arguments, run_context) as stream:
            yield stream

    async def _sent(self, *arguments: Any) -> tuple[Model[Any], Request]:
        model = self.wrapped
        if isinstance(model, FallbackModel):
            same = copy(model)
            same.models = [_TimelineModel(one, self._capability) for one in model.models]
            return same, arguments
        if isinstance(model, WrapperModel):
            wrapper = copy(model)
            wrapper.wrapped = _TimelineModel(model.wrapped, self._capability)
            return wrapper, arguments
        return model, await self._capability.request(model, *arguments)


def _without_changes(message: ModelMessage) -> ModelMessage:
    """The message without changes of settings, which Pydantic AI keeps in its messages but not in the request."""
    if not any(part.part_kind == _CHANGE for part in message.parts):
        return message
    parts: Any = [part for part in message.parts if part.part_kind != _CHANGE]
    return replace(message, parts=parts)


def _tool(tool: ToolDefinition) -> Json:
    """The tool's definition in a common form; here it is only counted."""
    names = {"name": tool.name, "description": tool.description or ""}
    return {**names, "input_schema": tool.parameters_json_schema}


# A request as messages.


def messages_of(rendered: Rendered) -> list[ModelMessage]:
    """The messages of a request, for a model that you call yourself. They begin with the system prompt and have the cache
    marks and thinking in the forms of the vendor's model. Pass the tools to the model."""
    pieces = list(pieces_of(rendered))
    names, messages = names_of(pieces), list[ModelMessage]()
    for is_answer, group in groupby(pieces, lambda piece: piece.role == "assistant"):
        if is_answer:
            vendor = _VENDORS[rendered.provider.name]
            parts: Any = [part for piece in group for part in _spoken(piece, vendor)]
            messages.append(ModelResponse(parts, model_name=rendered.model, provider_name=vendor))
        else:
            messages.append(ModelRequest([*_request_parts(group, names)]))
    return messages


def _request_parts(pieces: Iterator[ContentPiece], names: Mapping[str, str]) -> Iterator[Any]:
    for role, group in groupby(pieces, lambda piece: piece.role):
        if role == "tool":
            results = (piece.content for piece in group)
            yield from (_result(one, names) for one in results if isinstance(one, Result))
        elif role == "system":
            texts = [piece.content.text for piece in group if isinstance(piece.content, TextPart)]
            yield from map(SystemPromptPart, texts)
        else:
            contents = list[UserContent]()
            for piece in group:
                contents.append(_content(piece.content))
                contents += [CachePoint()] if piece.mark else []
            yield UserPromptPart(
                contents[0] if len(contents) == 1 and isinstance(contents[0], str) else contents
            )


def _result(result: Result, names: Mapping[str, str]) -> ToolReturnPart:
    contents = [_content(part) for part in result.parts]
    return ToolReturnPart(
        tool_name=names.get(result.call_id, "tool"),
        content=contents[0] if len(contents) == 1 else contents,
        tool_call_id=result.call_id,
        outcome="failed" if result.is_error else "success",
    )


def _content(part: Any) -> UserContent:
    match part:
        case TextPart():
            return part.text
        case ImagePart() if part.url:
            return ImageUrl(part.url)
        case ImagePart():
            return BinaryContent(b64decode(part.data), media_type=part.media_type)
        case DocumentPart() if part.url:
            return DocumentUrl(part.url)
        case DocumentPart(media_type="text/plain"):
            return BinaryContent(part.data.encode(), media_type=part.media_type)
        case DocumentPart():
            return BinaryContent(b64decode(part.data), media_type=part.media_type)
        case ProviderPart():
            return spelled(part.value)
        case _:
            raise TypeError(type(part).__name__)


def _spoken(piece: ContentPiece, vendor: str) -> Iterator[Any]:
    """The parts of an answer; `provider_name` tells the vendor's model that it may send a signature back."""
    match piece.content:
        case ModelText(text=text, provider=provider):
            own = _attached(provider)
            yield TextOfModel(text, provider_name=vendor, provider_details=own)
        case Call() as call:
            arguments = call.provider.get("arguments", call.input)
            own = _attached(call.provider)
            yield ToolCallPart(
                call.name, arguments, call.call_id, provider_name=vendor, provider_details=own
            )
        case Thought(value=value):
            yield from _thinking(value, vendor)
        case Verbatim() | _:
            pass


def _attached(provider: Json) -> Json | None:
    """What must be sent back with a text or a call."""
    own = {name: value for name, value in provider.items() if name in ("phase", "namespace")}
    seal = provider.get(SEAL)
    return {**own, **({"thought_signature": seal} if seal else {})} or None


def _thinking(value: Json, vendor: str) -> Iterator[ThinkingPart]:
    seal = string(value.get("signature")) or string(value.get("encrypted_content"))
    match value.get("type"):
        case "thinking":
            yield ThinkingPart(string(value.get("thinking")), signature=seal, provider_name=vendor)
        case "redacted_thinking":
            sealed = string(value.get("data"))
            yield ThinkingPart("", id="redacted_thinking", signature=sealed, provider_name=vendor)
        case "reasoning":
            own = string(value.get("id")) or f"rs_{sha256(seal.encode()).hexdigest()[:32]}"
            texts = [string(part.get("text")) for part in objs(value.get("summary"))] or [""]
            raw = [string(part.get("text")) for part in objs(value.get("content"))]
            details = {"raw_content": raw} if raw else None
            first = ThinkingPart(texts[0], id=own, signature=seal or None, provider_name=vendor)
            yield replace(first, provider_details=details)
            yield from (ThinkingPart(text, id=own, provider_name=vendor) for text in texts[1:])
        case str() as field if field in value:  # of Chat Completions
            yield ThinkingPart(string(value[field]), id=field, provider_name=vendor)
        case _ if seal := string(value.get(SEAL)):
            sealed_by = _attached(value)
            yield ThinkingPart(
                string(value.get("text")), provider_name=vendor, provider_details=sealed_by
            )
        case _:
            pass
