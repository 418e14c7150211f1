"""Google's ADK: a plugin that sends what a timeline renders to the agents' models.

Before each model call the contents of the request are synced, and the rendered ones take their place; the model's answer
is recorded with its usage, and the results of tools as soon as the runner has them.  ADK's session keeps all events.
ADK has one form of request for all models, Gemini's, so requests are rendered in it, whatever model is called.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from blocks import AlreadyRecordedError
from blocks.formats import Result, messages_in, obj, objs, plain
from render import Json, Rendered
from timeline.integrations._conversation import (
    AnyTimeline,
    Conversation,
    finished,
    lacking,
    timeline_for,
    timeline_of,
)

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins import BasePlugin
    from google.genai import types
except ModuleNotFoundError as error:
    raise lacking("google-adk", error) from error

_FORMAT: Final = "gemini"


@attrs.define(eq=False)
class _AgentConversation(Conversation):
    """What one agent of a session sees: the session's timeline, or a fork of it with another history, such as after a
    transfer."""

    target: Any = None
    """The timeline for the model that was called; None: none yet."""
    rendered: Rendered | None = None


class TimelinePlugin(BasePlugin):
    """A plugin for `App(..., plugins=[TimelinePlugin(timeline)])`, which a runner runs.

    A new session continues the timeline. Requests are rendered for the model that is called, also if it is not the
    timeline's.

    Args:
        timeline: The conversation. For many, a function from the session's id to a timeline; it is called once for each
            session and agent.
    """

    def __init__(self, timeline: AnyTimeline | Callable[[str], AnyTimeline]) -> None:
        super().__init__(name="foldline")
        self._timeline = timeline
        self._after: dict[str, int] = {}
        self._agents: dict[tuple[str, str], _AgentConversation] = {}

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Find the version of the timeline after which a new session begins."""
        session, run = invocation_context.session, invocation_context.invocation_id
        if session.id in self._after:
            return
        talk = Conversation(timeline_of(self._timeline, session.id))
        await talk.begin(is_new=all(event.invocation_id == run for event in session.events))
        self._after[session.id] = talk.after or 0

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """Sync the contents, and put the rendered ones in their place."""
        talk = self._of(callback_context.session.id, callback_context.agent_name)
        await talk.sync(llm_request.contents, _FORMAT)
        config = llm_request.config
        tools = [
            definition
            for tool in objs(plain(config.tools or []))
            for definition in objs(tool.get("function_declarations"))
        ]
        talk.target = timeline_for(talk.timeline, llm_request.model or "", (_FORMAT,))
        system = _text(plain(config.system_instruction))
        rendered: Rendered = await finished(talk.target.render(system=system, tools=tools))
        talk.rendered, contents = rendered, rendered.request()["contents"]
        llm_request.contents = [types.Content.model_validate(content) for content in contents]

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> None:
        """Record the model's answer; of one that streams, the whole at its end."""
        talk = self._of(callback_context.session.id, callback_context.agent_name)
        if llm_response.partial or talk.target is None or not llm_response.content:
            return
        answer: Json = llm_response.model_dump(exclude_none=True, mode="json", by_alias=True)
        reason = answer.get("finishReason")
        response = {
            "candidates": [{"content": answer["content"], "finishReason": reason}],
            "usageMetadata": answer.get("usageMetadata"),
            "modelVersion": answer.get("modelVersion"),
        }
        await finished(talk.target.record(response, talk.rendered, format=_FORMAT))

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> None:
        """Record the results of tools; those that a killed run would lose, or that end the run."""
        if not event.get_function_responses() or event.partial or not event.content:
            return
        talk = self._of(invocation_context.session.id, event.author)
        content: Json = event.content.model_dump(exclude_none=True, mode="json", by_alias=True)
        for message in messages_in(content, _FORMAT):
            for result in message.content:
                if isinstance(result, Result) and result.call_id in talk.timeline.open_calls:
                    await self._answer(talk.timeline, result)

    async def _answer(self, timeline: Any, result: Result) -> None:
        try:
            appended = timeline.tool_result(result.call_id, result.parts, is_error=result.is_error)
            await finished(appended)
        except AlreadyRecordedError:  # another agent of the session was faster
            pass

    def _of(self, session: str, agent: str) -> _AgentConversation:
        if (session, agent) not in self._agents:
            after = self._after.get(session, 0)
            self._agents[session, agent] = _AgentConversation(
                timeline_of(self._timeline, session), after
            )
        return self._agents[session, agent]


def _text(system: Any) -> str:
    """A system prompt, which is a text or a content with parts; empty: there is none."""
    if isinstance(system, str):
        return system
    return "\n\n".join(str(part.get("text", "")) for part in objs(obj(system).get("parts")))
