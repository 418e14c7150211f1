"""mini-swe-agent: chat messages with times in `extra`; before 1.1 a bare list without tool calls.

The first user message is the task; all later ones are from the environment: observations (in the bare
list), or complaints about a malformed answer.
"""

from blocks import text_of_parts
from blocks.formats import Json, obj, parts_of, string
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_response, usage_of
from persistence.sessions._returned import Returned
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._times import seconds

NAME = "mini-swe-agent"
_FIRST_CALL_SECONDS = 5.0
"""Only answers have times; the first request is assumed to be this much earlier than its answer."""


def looks(source: Source) -> bool:
    """Whether this is a trajectory of mini-SWE-agent."""
    first = source.document
    if "messages" in first:
        return string(first.get("trajectory_format")).startswith(NAME) or "mini_version" in obj(
            first.get("info")
        )
    return any(
        message.get("role") == "user"
        and string(message.get("content")).lstrip().startswith("<returncode>")
        for _, message in source.head
    )


def read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    for _, message in source.messages:
        _add(builder, message)
    return builder.build()


def _add(builder: Builder, message: Json) -> None:
    extra = obj(message.get("extra"))
    at = seconds(extra.get("timestamp"))
    parts = parts_of(message.get("content"))
    match message.get("role"):
        case "system":
            builder.system = builder.system or text_of_parts(parts)
        case "user" if not builder.latest.id:
            builder.user(parts, at)
        case "user":
            builder.attach(parts, at, "observation")
        case "assistant":
            _respond(builder, message, at)
        case "tool":
            key_fields = (
                {"exit_code": code} if isinstance(code := extra.get("returncode"), int) else {}
            )
            returned = Returned(parts=parts, key_fields=key_fields)
            builder.result(string(message.get("tool_call_id")), returned, at)
        case _:
            pass  # `exit`: the end of the run, which no model saw


def _respond(builder: Builder, message: Json, at: float | None) -> None:
    if at and not builder.clock:
        builder.tick(at - _FIRST_CALL_SECONDS)
    completion = obj(obj(message.get("extra")).get("response"))
    response = builder.respond(string(completion.get("id")))
    response.model = string(completion.get("model"))
    response.usage = usage_of(response, obj(completion.get("usage")))
    add_response(builder, response, message)
    builder.tick(at)
