"""Spans of an agent's work: a run, a model call, a tool call.

They belong to the agent's timeline, and exist only if that has a tracer.
"""

from contextlib import AbstractContextManager
from typing import Any, Final

from blocks import ToolCall
from blocks.formats import as_json
from render import Json
from timeline._timeline import Shell
from timeline.observe._traces import (
    Span,
    compacted_attributes,
    failed,
    provider_name,
    usage_attributes,
)
from timeline.react._calling import Done
from timeline.react._hooks import Outcome

FAILED_TOOL: Final = "tool_error"
"""The type of a failed tool call's error: the conventions ask for a short name, and the tool's output is content."""


def run_span(timeline: Shell, name: str) -> AbstractContextManager[Span]:
    """The span of an agent's run; the agent may have a name."""
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": provider_name(timeline.settings.provider.name),
        "gen_ai.request.model": timeline.settings.model.name,
        **({"gen_ai.agent.name": name} if name else {}),
    }
    return timeline.traces.span(f"invoke_agent {name}".rstrip(), about)


def ran(span: Span, outcome: Outcome) -> Outcome:
    """Add the result of a run to its span."""
    used = outcome.usage
    span.set_attributes(
        usage_attributes(used) | {"foldline.stop": outcome.stop, "foldline.rounds": outcome.rounds}
    )
    return outcome


def chat_span(timeline: Shell, arguments: Json) -> AbstractContextManager[Span]:
    """The span of one call to the model."""
    asked = (
        {"gen_ai.request.max_tokens": arguments["max_tokens"]} if "max_tokens" in arguments else {}
    )
    provider = timeline.settings.provider.name
    about = asked | compacted_attributes(timeline.view)
    return timeline.traces.chat(timeline.settings.model.name, provider, about)


def answered(span: Span, timeline: Shell, response: Any) -> Any:
    """Add the attributes of a response to its span."""
    if timeline.traces.are_on:
        said = as_json(response)
        named = {"id": said.get("id"), "model": said.get("model")}
        span.set_attributes(
            usage_attributes(timeline.settings.provider.usage(response))
            | {f"gen_ai.response.{name}": str(value) for name, value in named.items() if value}
            | {"gen_ai.response.finish_reasons": [timeline.settings.provider.stop(response)]}
        )
    return response


def tool_span(timeline: Shell, call: ToolCall) -> AbstractContextManager[Span]:
    """The span of one tool call."""
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.tool.type": "function",
    }
    return timeline.traces.span(f"execute_tool {call.name}", about)


def returned(span: Span, done: Done) -> Done:
    """Add the result of a tool call to its span."""
    if done.is_error:
        failed(span, FAILED_TOOL)
    return done
