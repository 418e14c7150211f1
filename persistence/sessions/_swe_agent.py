"""SWE-agent trajectories: chat messages in `history`, without times.

The first user message is the task; later ones are observations. Whole demonstrations are separate messages.
"""

from blocks import text_of_parts
from blocks.formats import Json, items, objs, parts_of, string
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_response
from persistence.sessions._returned import Returned
from persistence.sessions._session import Session
from persistence.sessions._source import Source

NAME = "swe-agent"


def looks(source: Source) -> bool:
    """Whether this is a trajectory of SWE-agent."""
    return "history" in source.document and "trajectory" in source.document


def read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    for message in objs(source.document.get("history")):
        _add(builder, message)
    return builder.build()


def _add(builder: Builder, message: Json) -> None:
    parts = parts_of(message.get("content"))
    match message.get("role"):
        case "system":
            text = text_of_parts(parts)
            builder.system = "\n\n".join(filter(None, (builder.system, text)))
        case _ if message.get("is_demo"):
            builder.attach(parts, None, "demonstration")
        case "user" if not builder.latest.id:
            builder.user(parts, None)
        case "user":
            builder.attach(parts, None, "observation")
        case "assistant":
            add_response(builder, builder.respond(), message)
        case "tool":
            ids = items(message.get("tool_call_ids")) or [message.get("tool_call_id")]
            builder.result(string(ids[0]), Returned(parts=parts), None)
        case _:
            pass
