"""A plain list of Anthropic messages, or a whole request with `system` and `tools`."""

from blocks import text_of_parts
from blocks.formats import Json, objs, parts_of, string
from persistence.sessions._builder import Builder
from persistence.sessions._claude import add_response, add_results, words_of
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._times import seconds
from persistence.sessions._tools import definitions

NAME = "anthropic"
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})


def looks(source: Source) -> bool:
    """Whether these messages have something that only Anthropic's have."""
    if "messages" in source.document and "system" in source.document:
        return True
    return any(
        string(message.get("role")) in {"user", "assistant"}
        and any(string(block.get("type")) in _BLOCKS for block in objs(message.get("content")))
        for _, message in source.messages
    )


def read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    document = source.document
    builder.model = string(document.get("model"))
    builder.system = text_of_parts(parts_of(document.get("system")))
    builder.tools = definitions(document.get("tools"))
    for number, message in source.messages:
        _add(builder, number, message)
    return builder.build()


def _add(builder: Builder, number: int, message: Json) -> None:
    content = message.get("content")
    at = seconds(message.get("timestamp"))
    match message.get("role"):
        case "user":
            rest = add_results(builder, content, at, number)
            builder.user(parts_of(rest), at, words_of(rest, content))
        case "assistant":
            response = builder.respond(string(message.get("id")))
            response.model = string(message.get("model"))
            add_response(builder, response, content)
            builder.tick(at)
        case "system":
            text = text_of_parts(parts_of(content))
            builder.system = "\n\n".join(filter(None, (builder.system, text)))
        case _:
            pass
