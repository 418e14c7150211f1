"""Messages of OpenAI's chat completions, which many agents log as they are."""

from blocks import UsageRecorded, text_of_parts
from persistence.sessions._builder import Builder
from persistence.sessions._json import Json, count, obj, objs, seconds, string, tool_input
from persistence.sessions._parts import parts_of
from persistence.sessions._returned import Returned
from persistence.sessions._stretch import Stretch


def add_response(builder: Builder, response: Stretch, message: Json) -> None:
    """Text and tool calls of an assistant message; its reasoning is never sent back."""
    response.say(text_of_parts(parts_of(message.get("content"))))
    calls = [(call, obj(call.get("function"))) for call in objs(message.get("tool_calls"))]
    if legacy := obj(message.get("function_call")):
        calls.append(({}, legacy))  # one call, without an id, and so is its result
    for call, function in calls:
        name = string(function.get("name"))
        arguments = tool_input(function.get("arguments"))
        builder.call(response, string(call.get("id")), name, arguments)


def add_message(builder: Builder, number: int, message: Json) -> None:
    """One chat message, whatever its role."""
    at = seconds(message.get("timestamp"))
    parts = parts_of(message.get("content"))
    match message.get("role"):
        case "system" | "developer" if not builder.started:
            text = text_of_parts(parts)
            builder.system = "\n\n".join(filter(None, (builder.system, text)))
        case "system" | "developer" as role:
            builder.attach(parts, at, role)
        case "user":
            builder.user(parts, at)
        case "assistant":
            add_response(builder, builder.respond(), message)
            builder.tick(at)
        case "tool" | "function":
            call_id = string(message.get("tool_call_id"))
            builder.result(call_id, Returned(parts=parts, line=number), at)
        case _:
            pass


def usage_of(response: Stretch, usage: Json) -> UsageRecorded | None:
    """What the completion cost; its prompt tokens include the cached ones."""
    if not usage:
        return None
    details = obj(usage.get("prompt_tokens_details"))
    return response.spent(
        count(usage.get("prompt_tokens")),
        count(details.get("cached_tokens")),
        count(usage.get("completion_tokens")),
    )
