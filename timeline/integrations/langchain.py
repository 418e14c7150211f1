"""LangChain and LangGraph: a middleware that sends what a timeline renders to the agent's model.

Before each model call the agent's messages are synced. The rendered request is sent in their place, unchanged, in the
body of the HTTP request (`extra_body` of both vendors' clients), so that nothing is converted twice.  The answer is
recorded with its usage once it is in the agent's state, including any edits by other middleware.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs

from blocks import MisuseError
from render import Json, Rendered
from timeline import (
    AsyncTimeline,
    Synced,
    Timeline,
    aretry_with_compaction,
    retry_with_compaction,
)
from timeline.integrations._lacking import lacking

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
except ModuleNotFoundError as error:
    raise lacking("langchain", error) from error

AnyTimeline: TypeAlias = Timeline | AsyncTimeline
_FORMAT: Final = "langchain"
_PACKAGES: Final = {
    "anthropic": "langchain_anthropic",
    "openai.chat": "langchain_openai",
    "openai.responses": "langchain_openai",
}
"""By provider: the package with the chat models for its API."""


@attrs.define(eq=False)
class _Going:
    """The state of a conversation: its timeline and its newest request."""

    timeline: Any
    """The given timeline, or its fork if the agent's history went back or was edited."""
    rendered: Rendered | None = None
    answer: str = ""
    """Id of the model's answer to that request; empty once it is recorded."""

    def answer_in(self, messages: Sequence[BaseMessage]) -> AIMessage | None:
        """The answer to be recorded; None: there is none, or it is not in the history."""
        found = (m for m in reversed(messages) if self.answer and m.id == self.answer)
        answer = next(found, None)
        self.answer = ""
        return answer if isinstance(answer, AIMessage) else None

    def synced(self, messages: Sequence[BaseMessage]) -> Synced[Timeline]:
        """Make the timeline agree with the messages."""
        if (answer := self.answer_in(messages)) is not None:
            self.timeline.record(answer, self.rendered, format=_FORMAT)
        synced = self.timeline.sync(messages, format=_FORMAT, on_divergence="follow")
        self.timeline = synced.timeline
        return cast("Synced[Timeline]", synced)

    async def asynced(self, messages: Sequence[BaseMessage]) -> Synced[AsyncTimeline]:
        """The same for asyncio."""
        if (answer := self.answer_in(messages)) is not None:
            await self.timeline.record(answer, self.rendered, format=_FORMAT)
        synced = await self.timeline.sync(messages, format=_FORMAT, on_divergence="follow")
        self.timeline = synced.timeline
        return cast("Synced[AsyncTimeline]", synced)


class TimelineMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """A middleware for `create_agent(..., middleware=[..., TimelineMiddleware(timeline)])`. It must be the last in
    the list, so that it sees the messages as they would be sent.

    The agent and the timeline must have the same model: a chat model of `langchain_anthropic`, or of
    `langchain_openai` with the API of the timeline's provider.

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
            MisuseError: the timeline is an `AsyncTimeline`, its model is of another provider, or there is no thread.
        """
        call = _Call(going=self._of(Timeline), model=request.model)
        return handler(request.override(model=_with(request.model, invoke=call.invoke)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Any]
    ) -> Any:
        """The same for asyncio."""
        call = _Call(going=self._of(AsyncTimeline), model=request.model)
        return await handler(request.override(model=_with(request.model, ainvoke=call.ainvoke)))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Record the model's last answer."""
        self._of(Timeline).synced(state["messages"])

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """The same for asyncio."""
        await self._of(AsyncTimeline).asynced(state["messages"])

    def _of(self, kind: type[AnyTimeline]) -> _Going:
        given = self._timeline
        timeline = given if isinstance(given, AnyTimeline) else given(_thread())
        if not isinstance(timeline, kind):
            raise MisuseError(
                "TimelineMiddleware: invoke() and stream() go with a Timeline, "
                f"ainvoke() and astream() with an AsyncTimeline; this is {type(timeline).__name__}"
            )
        return self._going.setdefault(timeline, _Going(timeline))


@attrs.frozen(kw_only=True)
class _Call:
    """One call of a model."""

    going: _Going
    model: BaseChatModel

    def invoke(
        self, messages: Sequence[BaseMessage], config: Any = None, **asked: Any
    ) -> AIMessage:
        going = self.going

        def send(rendered: Rendered) -> AIMessage:
            going.rendered = rendered
            model, sent = _sent(self.model, rendered, asked)
            return model.invoke(messages[-1:], config, **sent)

        synced, tools = going.synced(messages), asked.get("tools")
        answer = retry_with_compaction(going.timeline, send, system=synced.system, tools=tools)
        going.answer = answer.id or ""
        return answer

    async def ainvoke(
        self, messages: Sequence[BaseMessage], config: Any = None, **asked: Any
    ) -> AIMessage:
        going = self.going

        async def send(rendered: Rendered) -> AIMessage:
            going.rendered = rendered
            model, sent = _sent(self.model, rendered, asked)
            return await model.ainvoke(messages[-1:], config, **sent)

        synced, tools = await going.asynced(messages), asked.get("tools")
        answer = await aretry_with_compaction(
            going.timeline, send, system=synced.system, tools=tools
        )
        going.answer = answer.id or ""
        return answer


def _with(model: BaseChatModel, **methods: Callable[..., Any]) -> BaseChatModel:
    """A copy of the model with other methods; whatever is bound to it, such as tools, stays."""
    same = model.model_copy()
    vars(same).update(methods)
    return same


def _sent(model: BaseChatModel, rendered: Rendered, asked: Json) -> tuple[BaseChatModel, Json]:
    """The model and the keyword arguments with which the rendered request is sent in place of the messages."""
    provider = rendered.provider.name
    package = _PACKAGES.get(provider, "")
    if not any(kind.__module__.partition(".")[0] == package for kind in type(model).__mro__):
        raise MisuseError(
            f"TimelineMiddleware: the timeline's model {rendered.model!r} is one of {provider!r}, and the "
            f"agent's is a {type(model).__name__}: open the timeline with model= that of the agent"
        )
    if hasattr(model, "use_responses_api"):
        model = model.model_copy(update={"use_responses_api": provider == "openai.responses"})
    body: Json = {}
    for given in (vars(model), vars(model).get("model_kwargs"), asked):
        body |= (given or {}).get("extra_body") or {}
    return model, {**asked, "extra_body": {**body, **rendered.request()}}


def _thread() -> str:
    thread = get_config().get("configurable", {}).get("thread_id")
    if not thread:
        raise MisuseError(
            "TimelineMiddleware: a function of the thread's id needs one: "
            "invoke(..., config={'configurable': {'thread_id': ...}})"
        )
    return str(thread)
