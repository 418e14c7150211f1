"""The table of formats, and functions that use it: parts, messages, a response, a stream."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast, get_args

import attrs

from blocks._block import Part
from blocks._errors import ArgumentError, did_you_mean, in_short, in_words
from blocks.formats import _anthropic, _chat, _gemini, _langchain, _pydantic_ai, _responses
from blocks.formats._message import Format, Json, Message, Response, Shape, dumped, parts_of, plain

FORMATS: Final[tuple[Format, ...]] = get_args(Format)


class Stream(Protocol):
    """A response that is being received."""

    def add(self, event: Json) -> None:
        """Handle the next event."""
        ...

    def response(self) -> Json | None:
        """The JSON of the response as far as it was received; None if nothing was."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the end of the response was received."""
        ...


@attrs.frozen
class _Reader:
    read: Callable[[Json], Iterator[Message]]
    """Converts one item of a history to messages."""
    response: Callable[[Json], Response | None]
    stream: Callable[[], Stream] | None = None
    """A new stream of events; None: the format has none."""
    shape: Shape | None = None
    """The names that an API gives to things; None: the format is a framework's."""


_READERS: Final[Mapping[str, _Reader]] = {
    "anthropic": _Reader(
        _anthropic.read, _anthropic.response, _anthropic.AnthropicStream, _anthropic.ANTHROPIC_SHAPE
    ),
    "openai.chat": _Reader(_chat.read, _chat.response, _chat.ChatStream, _chat.CHAT_SHAPE),
    "openai.responses": _Reader(
        _responses.read, _responses.response, _responses.ResponsesStream, _responses.RESPONSES_SHAPE
    ),
    "gemini": _Reader(_gemini.read, _gemini.response, _gemini.GeminiStream, _gemini.GEMINI_SHAPE),
    "langchain": _Reader(_langchain.read, _langchain.response),
    "pydantic_ai": _Reader(_pydantic_ai.read, _pydantic_ai.response),
}
SHAPES: Final[Mapping[str, Shape]] = {
    name: reader.shape for name, reader in _READERS.items() if reader.shape
}
"""The names that each API gives to things, by the API's own name."""
RESPONSES: Final[Mapping[str, Callable[[Json], Response | None]]] = {
    name: reader.response for name, reader in _READERS.items()
}
"""By format: reads a response, given as JSON; None if it is not a response of this format."""


def checked_format(name: object, call: str) -> Format:
    """The name, if there is a format with this name.

    Raises:
        ArgumentError: there is none.
    """
    if name in FORMATS:
        return name
    advice = did_you_mean(name, FORMATS) or f"; known: {', '.join(FORMATS)}"
    raise ArgumentError(f"{call}: no format {in_words(name)}{advice}")


def parts_from(content: object, format: Format) -> tuple[Part, ...]:  # noqa: A002 -- as everywhere
    """The parts of a message's content: a text, a content block, or a list of both.

    Content of an unknown kind becomes a `ProviderPart`, which keeps the original.

    Raises:
        ArgumentError: there is no such format.
        CodecError: the content has a value that cannot be stored; the message says where.
    """
    checked_format(format, "parts_from()")
    return parts_of(plain(content))


def messages_from(messages: object, format: Format) -> Iterator[Sequence[Message]]:  # noqa: A002
    """For each item of a history (a dict, or an object of an SDK or a framework), its messages.

    One item may be several messages: a request of Pydantic AI has the user's text and results of tools.

    Raises:
        ArgumentError: it is not a list of messages, or an item is not a message; the error says which.
        CodecError: an item has a value that cannot be stored.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise ArgumentError(f"expected a list of messages, not {in_words(messages)}")
    read = _READERS[checked_format(format, "messages_from()")].read
    for number, item in enumerate(cast("Iterable[object]", messages)):
        fields = dumped(item, f"messages[{number}]: expected a message of the format {format!r}")
        yield _checked(tuple(read(fields)), fields, number, format)


def messages_in(fields: Json, name: Format) -> tuple[Message, ...]:
    """The messages of one item of a history, given as JSON; empty if it is not a message."""
    return tuple(_READERS[name].read(fields))


def _checked(messages: Sequence[Message], fields: Json, at: int, name: str) -> Sequence[Message]:
    is_empty = fields.get("type") in ("item_reference", "remove") or "parts" in fields
    if messages or is_empty:
        return messages
    type_fields = {key: fields[key] for key in ("role", "type", "kind") if key in fields}
    raise ArgumentError(f"messages[{at}]: {type_fields} is not a message of the format {name!r}")


def response_from(response: object, format: Format) -> Response:  # noqa: A002 -- as everywhere
    """A response of a model: the object of an SDK or a framework, or its JSON.

    Raises:
        ArgumentError: it is not a response of this format, or is empty.
        CodecError: it has a value that cannot be stored; the message says where.
    """
    what = f"a response of the format {format!r}"
    fields = dumped(response, f"expected {what}")
    reply = RESPONSES[checked_format(format, "response_from()")](fields)
    if reply is None:
        raise ArgumentError(f"expected {what}; {_summary_of(fields)}")
    if not reply.message.content and reply.usage is None:
        raise ArgumentError(f"{what} is empty: it has neither content nor usage")
    return reply


def _summary_of(fields: Json) -> str:
    error: Any = fields.get("error")
    if isinstance(error, dict):
        why = cast("Json", error).get("message", "without a message")
        return f"this is an error: {in_short(str(why))}"
    return f"this has {in_short(', '.join(sorted(fields)[:6])) or 'nothing'}"


# Streams: the events of a response, joined. Only complete content counts, if the stream ends early: the text received so
# far, and calls whose arguments are complete.


def stream_of(name: Format, call: str) -> Stream:
    """A new stream of a format.

    Raises:
        ArgumentError: there is no such format, or it has no stream of events.
    """
    new_stream = _READERS[checked_format(name, call)].stream
    if new_stream is None:
        raise ArgumentError(
            f"{call}: {name!r} has no stream of events; record its whole response with record()"
        )
    return new_stream()


def event_of(event: object) -> Json:
    """One event as JSON.

    Raises:
        ArgumentError: it has no fields.
    """
    return dumped(event, "recording(): expected an event of the stream")
