"""A plain list of OpenAI chat messages, or a whole request with `messages` and `tools`."""

from blocks.formats import string
from persistence.sessions._builder import Builder
from persistence.sessions._chat import add_message
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._tools import definitions

NAME = "openai"
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def looks(source: Source) -> bool:
    """Whether these are chat messages."""
    return any(
        string(message.get("role")) in _ROLES and ("content" in message or "tool_calls" in message)
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
