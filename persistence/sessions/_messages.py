"""Adds messages that were read from any provider's format to a session being built."""

from collections.abc import Iterable

from blocks import text_of_parts
from blocks.formats import Call, Content, Message, Result, Said, Thought, parts_in
from persistence.sessions._builder import Builder, Voice
from persistence.sessions._returned import Returned
from persistence.sessions._stretch import Stretch


def add_said(builder: Builder, response: Stretch, content: Iterable[Content]) -> None:
    """Add the content of a model's message, except that of server tools and of unknown kinds."""
    for said in content:
        match said:
            case Said(text=text):
                response.say(text)
            case Call():
                builder.call(response, said.call_id, said.name, said.input)
            case Thought(value=value):
                response.think(value)
            case _:
                pass


def add_message(builder: Builder, message: Message, number: int, at: float | None) -> None:
    """Add a message of a history. Text beside results is a steer, because the agent is still running."""
    parts = parts_in(message.content)
    match message.role:
        case "assistant":
            add_said(builder, builder.respond(message.id), message.content)
            builder.tick(at)
        case "system" if not builder.started:
            builder.system = "\n\n".join(filter(None, (builder.system, text_of_parts(parts))))
        case "system":
            builder.operator(parts, at, message.title or "system")
        case "user" | "tool":
            results = [c for c in message.content if isinstance(c, Result)]
            for result in results:
                returned = Returned(parts=result.parts, is_error=result.is_error, line=number)
                builder.result(result.call_id, returned, at)
            voice: Voice = "steer" if results else "prompt"
            if parts:
                builder.user(parts, at, voice)


def add_history(builder: Builder, said: Iterable[Message], number: int, at: float | None) -> None:
    """Add consecutive messages; messages of the model with nothing between them are one response."""
    response: Stretch | None = None
    for message in said:
        if message.role != "assistant":
            response = None
            add_message(builder, message, number, at)
            continue
        response = response or builder.respond(message.id)
        add_said(builder, response, message.content)
