"""Messages in the format of a provider, which many agents log unchanged: how they become a part of a session."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from blocks import UsageRecorded, text_of_parts
from blocks.formats import (
    Call,
    Content,
    Json,
    Message,
    ModelText,
    Result,
    Thought,
    messages_in,
    obj,
    objs,
    parts_in,
    string,
    tier_of,
    usage_in,
)
from persistence.sessions._builder import Builder, LoggedResult, LogStretch
from persistence.sessions._source import seconds

# Any provider's.


def add_message(builder: Builder, message: Message, number: int, at: float | None) -> None:
    """Add a message of a history. Text beside results is a steer, because the agent is still running."""
    parts = parts_in(message.content)
    match message.role:
        case "assistant":
            add_content(builder, builder.respond(message.id), message.content)
            builder.tick(at)
        case "system" if not builder.started:
            builder.system = "\n\n".join(filter(None, (builder.system, text_of_parts(parts))))
        case "system":
            builder.operator(parts, at, message.title or "system")
        case "user" | "tool":
            has_results = add_results(builder, message.content, number, at)
            if parts:
                builder.user(parts, at, steers=has_results)


def add_history(
    builder: Builder, history: Iterable[Message], number: int, at: float | None
) -> None:
    """Add consecutive messages; messages of the model with nothing between them are one response."""
    response: LogStretch | None = None
    for message in history:
        if message.role != "assistant":
            response = None
            add_message(builder, message, number, at)
            continue
        response = response or builder.respond(message.id)
        add_content(builder, response, message.content)


def add_content(builder: Builder, response: LogStretch, content: Iterable[Content]) -> None:
    """Add the content of a model's message, except that of server tools and of unknown kinds."""
    for piece in content:
        match piece:
            case ModelText(text=text):
                response.say(text)
            case Call():
                builder.call(response, piece.call_id, piece.name, piece.input)
            case Thought(value=value):
                response.think(value)
            case _:
                pass


def add_results(
    builder: Builder, content: Iterable[Content], number: int, at: float | None
) -> bool:
    """Add the results of tools in a message; return whether there are any."""
    results = [piece for piece in content if isinstance(piece, Result)]
    for result in results:
        logged = LoggedResult(parts=result.parts, is_error=result.is_error, line=number)
        builder.result(result.call_id, logged, at)
    return bool(results)


def definitions(tools: Any) -> tuple[Json, ...]:
    """`tools` in the form `name`, `description`, `input_schema`; tools without a schema are left out."""
    return tuple(definition for tool in objs(tools) if (definition := _definition(tool)))


def _definition(tool: Json) -> Json:
    function = obj(tool.get("function")) or tool
    schema = function.get("input_schema", function.get("parameters"))
    name = string(function.get("name"))
    if not name or not isinstance(schema, dict):
        return {}
    return {
        "name": name,
        "description": string(function.get("description")),
        "input_schema": obj(schema),
    }


# OpenAI's chat completions.


def add_chat_message(builder: Builder, number: int, message: Json) -> None:
    at = seconds(message.get("timestamp"))
    for read in messages_in(message, "openai.chat"):
        match read.role:
            case "assistant":
                add_chat_response(builder, builder.respond(), message)
                builder.tick(at)
            case "user":
                builder.user(parts_in(read.content), at)
            case _:
                add_message(builder, replace(read, title=string(message["role"])), number, at)


def add_chat_response(builder: Builder, response: LogStretch, message: Json) -> None:
    """Add text and tool calls of an assistant message; its reasoning is left out, because it is never sent back."""
    for read in messages_in({**message, "role": "assistant"}, "openai.chat"):
        response.say("\n".join(c.text for c in read.content if isinstance(c, ModelText)))
        add_content(builder, response, (c for c in read.content if isinstance(c, Call)))


def chat_usage(response: LogStretch, completion: Json) -> UsageRecorded | None:
    """The usage that the completion reports; None: not reported."""
    usage = obj(completion.get("usage"))
    reported, tier = usage_in(usage), tier_of(usage, completion)
    return reported and replace(reported, model=response.model, response=response.id, tier=tier)
