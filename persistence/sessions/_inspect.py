"""Inspect's evaluation logs: samples with chat messages in Inspect's own format; `file#3` chooses a sample."""

from blocks.formats import Json, obj, objs, string
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_message
from persistence.sessions._session import Session
from persistence.sessions._source import Source

NAME = "inspect"


def looks(source: Source) -> bool:
    """Whether this is a log of Inspect."""
    return "samples" in source.document and "eval" in source.document


def read(source: Source) -> Session:
    """The requested sample of `source`, or the first."""
    builder = Builder(source, NAME)
    builder.model = string(obj(source.document.get("eval")).get("model"))
    sample = builder.pick(objs(source.document.get("samples")))
    for message in objs(sample.get("messages")):
        add_message(builder, 0, _chat(message))
    return builder.build()


def _chat(message: Json) -> Json:
    """The message in the format of chat completions, where `function` is an object instead of a name."""
    calls = [
        {"id": call.get("id"), "function": {**call, "name": call.get("function")}}
        for call in objs(message.get("tool_calls"))
    ]
    return {**message, "tool_calls": calls}
