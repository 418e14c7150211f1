"""LangChain and LangGraph: a middleware that sends what a timeline renders to the agent's model, and the messages of a
request for a program that calls the model itself.

Before each model call the agent's messages are synced. The request is rendered for the model that is called, and sent in
their place: in the body of the HTTP request, where the vendor's client takes one, so that nothing is converted twice; to
other models, test models among them, as messages.  The answer is recorded with its usage once it is in the agent's
state, including any edits by other middleware.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs

from blocks import DocumentPart, ImagePart, MisuseError, ProviderPart, TextPart
from blocks.formats import Call, ModelText, Result, Thought, Verbatim, string
from render import Json, Rendered
from timeline import AsyncTimeline, Timeline, retry_with_compaction
from timeline._flow_drivers import adrive, drive
from timeline.integrations._conversation import AnyTimeline, lacking, timeline_for
from timeline.integrations._pieces import SEAL, ContentPiece, names_of, pieces_of

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.runnables import Runnable, RunnableWithFallbacks
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
except ModuleNotFoundError as error:
    raise lacking("langchain", error) from error

_FORMAT: Final = "langchain"
_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    "langchain_anthropic": ("anthropic",),
    "langchain_google_genai": ("gemini",),
    "langchain_openai": ("openai.responses", "openai.chat"),
}
"""By package of chat models: the APIs of its vendor whose requests it sends as they were rendered."""
_VENDORS: Final = {
    "anthropic": "anthropic",
    "openai.chat": "openai",
    "openai.responses": "openai",
    "gemini": "google_genai",
}
"""What LangChain calls the vendor of each API."""


@attrs.define(eq=False)
class _Going:
    """The state of a conversation: its timeline and its newest request."""

    timeline: Any
    """The given timeline, or its fork if the agent's history went back or was edited."""
    target: Any = None
    """The same for the model that was called; None: none yet."""
    rendered: Rendered | None = None
    answer: str = ""
    """Id of the model's answer to that request; empty once it is recorded."""

    def answer_in(self, messages: Sequence[BaseMessage]) -> AIMessage | None:
        """The answer to be recorded; None: there is none, or it is not in the history."""
        matches = (m for m in reversed(messages) if self.answer and m.id == self.answer)
        answer = next(matches, None)
        self.answer = ""
        return answer if isinstance(answer, AIMessage) else None

    def synced(self, messages: Sequence[BaseMessage]) -> Generator[Any, Any, Any]:
        """Make the timeline agree with the messages."""
        if (answer := self.answer_in(messages)) is not None:
            yield lambda: self.target.record(answer, self.rendered, format=_FORMAT)
        synced = yield lambda: self.timeline.sync(messages, format=_FORMAT, on_divergence="follow")
        self.timeline = synced.timeline
        return synced


class TimelineMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """A middleware for `create_agent(..., middleware=[..., TimelineMiddleware(timeline)])`. It must be the last in
    the list, so that it sees the messages as they would be sent.

    Requests are rendered for the model that is called, also if it is not the timeline's, such as a fallback. Chat models
    of `langchain_anthropic`, `langchain_openai` and `langchain_google_genai` send them as they were rendered; to any
    other model they are given as messages, see `messages_of`.

    Args:
        timeline: The conversation; an `AsyncTimeline` for `ainvoke` and `astream`. For many conversations, a function
            from the thread's id to a timeline. It is called at each model call, and must return the same object as
            long as the thread is in use.
    """

    def __init__(self, timeline: AnyTimeline | Callable[[str], AnyTimeline]) -> None:
        super().__init__()
        self._timeline = timeline
        self._going: WeakKeyDictionary[AnyTimeline, _Going] = WeakKeyDictionary()

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Call the model with the timeline's rendered request.

        Raises:
            MisuseError: the timeline is an `AsyncTimeline`, or there is no thread.
        """
        return handler(request.override(model=_asking(request.model, self._of(Timeline))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Any]
    ) -> Any:
        """The same for asyncio."""
        going = self._of(AsyncTimeline)
        return await handler(request.override(model=_asking(request.model, going)))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Record the model's last answer."""
        drive(self._of(Timeline).synced(state["messages"]))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """The same for asyncio."""
        await adrive(self._of(AsyncTimeline).synced(state["messages"]))

    def _of(self, kind: type[AnyTimeline]) -> _Going:
        source = self._timeline
        timeline = source if isinstance(source, AnyTimeline) else source(_thread())
        if not isinstance(timeline, kind):
            raise MisuseError(
                "TimelineMiddleware: invoke() and stream() go with a Timeline, "
                f"ainvoke() and astream() with an AsyncTimeline; this is {type(timeline).__name__}"
            )
        return self._going.setdefault(timeline, _Going(timeline))


@attrs.frozen(kw_only=True)
class _ModelCall:
    """One call of a model."""

    going: _Going
    model: BaseChatModel

    def invoke(
        self, messages: Sequence[BaseMessage], config: Any = None, **options: Any
    ) -> AIMessage:
        return drive(self._answered(messages, "invoke", config, options))

    async def ainvoke(
        self, messages: Sequence[BaseMessage], config: Any = None, **options: Any
    ) -> AIMessage:
        return await adrive(self._answered(messages, "ainvoke", config, options))

    def _answered(
        self, messages: Sequence[BaseMessage], method: str, config: Any, options: Json
    ) -> Generator[Any, Any, AIMessage]:
        """The model's answer to the timeline's request, by this method of the model."""
        going = self.going

        def send(rendered: Rendered) -> Any:
            going.rendered = rendered
            model, prompt, sent = _sent(self.model, rendered, messages, options)
            return getattr(model, method)(prompt, config, **sent)

        synced, tools = (yield from going.synced(messages)), options.get("tools")
        target = going.target = self.timeline(going.timeline)
        answer: AIMessage = yield lambda: retry_with_compaction(
            target, send, system=synced.system, tools=tools
        )
        going.answer = answer.id or ""
        return answer

    def timeline(self, own: Any) -> Any:
        """The timeline for this model."""
        model = vars(self.model)
        name, apis = model.get("model_name") or model.get("model"), _apis(self.model)
        if model.get("use_responses_api") is not None:
            apis = apis[:1] if model["use_responses_api"] else apis[1:]
        return timeline_for(own, string(name), apis)


def _asking(model: Any, going: _Going) -> Any:
    """A copy of the model that asks with the timeline's requests; whatever is bound to it, such as tools, stays."""
    if isinstance(model, RunnableWithFallbacks):
        fallbacks: list[Runnable[Any, Any]] = [_asking(one, going) for one in model.fallbacks]
        return model.model_copy(
            update={"runnable": _asking(model.runnable, going), "fallbacks": fallbacks}
        )
    if not isinstance(model, BaseChatModel):
        raise MisuseError(
            f"TimelineMiddleware: the agent's model must be a chat model, not a {type(model).__name__}; "
            "bind tools and settings by the agent's own arguments"
        )
    call, same = _ModelCall(going=going, model=model), model.model_copy()
    vars(same).update(invoke=call.invoke, ainvoke=call.ainvoke)
    return same


def _apis(model: BaseChatModel) -> tuple[str, ...]:
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    return next((apis for package, apis in _APIS.items() if package in packages), ())


def _sent(
    model: BaseChatModel, rendered: Rendered, messages: Sequence[BaseMessage], options: Json
) -> tuple[BaseChatModel, Sequence[BaseMessage], Json]:
    """The model, the messages and the keyword arguments with which the request is sent; in the body of an HTTP request it
    takes the place of the messages."""
    provider, request = rendered.provider.name, rendered.request()
    if provider not in _apis(model):
        return model, messages_of(rendered), options
    last = messages[-1]
    prompt = [HumanMessage(last.content)] if isinstance(last, ToolMessage) else [last]
    if provider == "gemini":
        own = {
            name: value for name, value in dict(options.get("http_options") or ()).items() if value
        }
        body = {**own.get("extra_body", {}), "contents": request["contents"]}
        body |= {n: v for n, v in request["config"].items() if n == "systemInstruction"}
        return model, prompt, {**options, "http_options": {**own, "extra_body": body}}
    if hasattr(model, "use_responses_api"):
        model = model.model_copy(update={"use_responses_api": provider == "openai.responses"})
    body = {}
    for settings in (vars(model), vars(model).get("model_kwargs"), options):
        body |= (settings or {}).get("extra_body") or {}
    return model, prompt, {**options, "extra_body": {**body, **request}}


def _thread() -> str:
    thread = get_config().get("configurable", {}).get("thread_id")
    if not thread:
        raise MisuseError(
            "TimelineMiddleware: a function of the thread's id needs one: "
            "invoke(..., config={'configurable': {'thread_id': ...}})"
        )
    return str(thread)


# A request as messages.


_SEALS: Final = "__gemini_function_call_thought_signatures__"
"""Where LangChain keeps the signatures of Gemini's calls."""


def messages_of(rendered: Rendered) -> list[BaseMessage]:
    """The messages of a request, for a model that you call yourself, such as one in a node of a graph. They begin with
    the system prompt and have the cache marks and thinking in the forms of the vendor's chat model. Bind the tools to
    the model."""
    pieces = list(pieces_of(rendered))
    names, vendor = names_of(pieces), _VENDORS[rendered.provider.name]
    messages: list[BaseMessage] = []
    for role, group in groupby(pieces, lambda piece: piece.role):
        run = list(group)
        match role:
            case "assistant":
                messages.append(_spoken(run, vendor))
            case "tool":
                messages += _results(run, names)
            case "system" if not messages or vendor != "google_genai":
                messages.append(SystemMessage(_content(run)))
            case _:
                messages.append(HumanMessage(_content(run)))
    return messages


def _content(pieces: Sequence[ContentPiece]) -> Any:
    return _alone([{**_block(piece.content), **piece.mark} for piece in pieces])


def _alone(blocks: list[Any]) -> Any:
    """The text if the blocks are nothing else."""
    is_text = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return blocks[0]["text"] if is_text else blocks


def _block(part: Any) -> Json:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart() if part.url:
            return {"type": "image", "url": part.url}
        case ImagePart():
            return {"type": "image", "base64": part.data, "mime_type": part.media_type}
        case DocumentPart() if part.url:
            return {"type": "file", "url": part.url, "mime_type": "application/pdf"}
        case DocumentPart(media_type="text/plain"):
            return {"type": "text-plain", "text": part.data, "mime_type": part.media_type}
        case DocumentPart():
            extra = {"filename": part.name} if part.name else {}
            return {"type": "file", "base64": part.data, "mime_type": part.media_type, **extra}
        case ProviderPart():
            return part.value
        case _:
            raise TypeError(type(part).__name__)


def _results(pieces: Sequence[ContentPiece], names: Mapping[str, str]) -> Iterator[ToolMessage]:
    for piece in pieces:
        if not isinstance(result := piece.content, Result):
            continue
        blocks: list[Any] = [_block(part) for part in result.parts]
        if blocks and piece.mark:
            blocks[-1] = {**blocks[-1], **piece.mark}
        kind = string(piece.raw.get("type"))
        is_own = kind in ("custom_tool_call_output", "computer_call_output")
        yield ToolMessage(
            content=_alone(blocks),
            tool_call_id=result.call_id,
            name=names.get(result.call_id),
            status="error" if result.is_error else "success",
            additional_kwargs={"type": kind} if is_own else {},
        )


def _spoken(pieces: Sequence[ContentPiece], vendor: str) -> AIMessage:
    calls = [piece.content for piece in pieces if isinstance(piece.content, Call)]
    seals = {c.call_id: c.provider[SEAL] for c in calls if c.provider.get(SEAL)}
    blocks: list[Any] = [block for piece in pieces for block in _content_blocks(piece, vendor)]
    return AIMessage(
        content=blocks,
        tool_calls=[{"name": c.name, "args": c.input, "id": c.call_id} for c in calls],
        response_metadata={"model_provider": vendor},
        additional_kwargs={_SEALS: seals} if seals else {},
    )


def _content_blocks(piece: ContentPiece, vendor: str) -> Iterator[Json]:
    """The blocks of what the model said, in the form in which LangChain returns this vendor's."""
    match piece.content:
        case ModelText(text=text, provider={"thoughtSignature": seal}):
            yield {"type": "text", "text": text, "extras": {"signature": seal}}
        case ModelText(text=text, provider=extras):
            yield {"type": "text", "text": text, **extras, **piece.mark}
        case Thought(value={"text": text, "thoughtSignature": seal}):
            yield {"type": "thinking", "thinking": text, "signature": seal}
        case Thought(value={"text": text}):
            yield {"type": "thinking", "thinking": text}
        case Thought(value=value) | Verbatim(value=value):
            yield value
        case Call() if "tool_calls" not in piece.raw and vendor != "google_genai":
            yield piece.raw
        case _:
            pass
