"""Messages of OpenAI's chat completions, which many agents log unchanged."""

from msgspec.structs import replace

from blocks import UsageRecorded, text_of_parts
from blocks.formats import Call, Json, Result, Said, messages_in, parts_in, usage_in
from persistence.sessions._builder import Builder
from persistence.sessions._returned import Returned
from persistence.sessions._stretch import Stretch
from persistence.sessions._times import seconds


def add_response(builder: Builder, response: Stretch, message: Json) -> None:
    """Add text and tool calls of an assistant message; its reasoning is left out, because it is never sent back."""
    for read in messages_in({**message, "role": "assistant"}, "openai.chat"):
        response.say("\n".join(c.text for c in read.content if isinstance(c, Said)))
        for call in read.content:
            if isinstance(call, Call):
                builder.call(response, call.call_id, call.name, call.input)


def add_message(builder: Builder, number: int, message: Json) -> None:
    """Add one chat message of any role."""
    at = seconds(message.get("timestamp"))
    for read in messages_in(message, "openai.chat"):
        parts = parts_in(read.content)
        match read.role:
            case "system" if not builder.started:
                builder.system = "\n\n".join(filter(None, (builder.system, text_of_parts(parts))))
            case "system":
                builder.operator(parts, at, message["role"])
            case "user":
                builder.user(parts, at)
            case "assistant":
                add_response(builder, builder.respond(), message)
                builder.tick(at)
            case "tool":
                for result in read.content:
                    if isinstance(result, Result):
                        returned = Returned(parts=result.parts, line=number)
                        builder.result(result.call_id, returned, at)


def usage_of(response: Stretch, usage: Json) -> UsageRecorded | None:
    """The usage that the completion reports; None: not reported."""
    found = usage_in(usage)
    return found and replace(found, model=response.model, response=response.id)
