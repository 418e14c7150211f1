"""Factory's Droid: messages of Anthropic's API, one per line. Most versions name the model in a separate file."""

from blocks.formats import messages_in, obj, objs, string
from persistence.sessions._builder import Builder
from persistence.sessions._messages import add_message
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._times import seconds

NAME = "droid"
_BLOCKS = frozenset({"tool_use", "tool_result"})


def looks(source: Source) -> bool:
    """Whether these are lines of a Droid session."""
    return any(
        line.get("type") == "session_start"
        or (
            line.get("type") == "message"
            and any(
                string(block.get("type")) in _BLOCKS
                for block in objs(obj(line.get("message")).get("content"))
            )
        )
        for _, line in source.head
    )


def read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    for number, line in source.records:
        if line.get("type") != "message":
            continue  # its title, its to-do list, a compaction
        at = seconds(line.get("timestamp"))
        fields = {**obj(line.get("message")), "id": line.get("id")}
        for message in messages_in(fields, "anthropic"):
            add_message(builder, message, number, at)
            if message.role == "assistant":
                builder.latest.model = string(fields.get("model"))
    return builder.build()
