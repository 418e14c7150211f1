"""A plain list of OpenAI chat messages, or a whole request with `messages` and `tools`."""

from blocks import text_of_parts
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_response
from persistence.sessions._json import Json, seconds, string
from persistence.sessions._parts import parts_of
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._stretch import Returned
from persistence.sessions._tools import definitions

NAME = "openai"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def looks(source: Source) -> bool:
    """Whether these are chat messages at all."""
    return any(
        message.get("role") in _ROLES and ("content" in message or "tool_calls" in message)
        for _, message in source.messages
    )


def read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    builder.model = string(source.document.get("model"))
    builder.tools = definitions(source.document.get("tools"))
    for number, message in source.messages:
        add_message(builder, number, message)
    return builder.build()


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
