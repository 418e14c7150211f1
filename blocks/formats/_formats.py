"""The table of formats, and functions that use it: parts, messages, a response."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import attrs

from blocks._content import Part
from blocks._errors import ArgumentError
from blocks._nearest import did_you_mean, in_words
from blocks.formats import _anthropic, _chat, _gemini, _langchain, _pydantic_ai, _responses
from blocks.formats._dump import dumped, plain
from blocks.formats._json import Json
from blocks.formats._message import Message, Response
from blocks.formats._parts import parts_of

Format: TypeAlias = Literal[
    "anthropic", "openai.chat", "openai.responses", "gemini", "langchain", "pydantic_ai"
]
"""The format of messages."""
FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@attrs.frozen
class _Reader:
    read: Callable[[Json], Iterator[Message]]
    """The messages that one item of a history stands for."""
    response: Callable[[Json], Response | None]


_READERS: Final[Mapping[str, _Reader]] = {
    "anthropic": _Reader(_anthropic.read, _anthropic.response),
    "openai.chat": _Reader(_chat.read, _chat.response),
    "openai.responses": _Reader(_responses.read, _responses.response),
    "gemini": _Reader(_gemini.read, _gemini.response),
    "langchain": _Reader(_langchain.read, _langchain.response),
    "pydantic_ai": _Reader(_pydantic_ai.read, _pydantic_ai.response),
}


def checked_format(name: object, call: str) -> Format:
    """The name of a format.

    Raises:
        ArgumentError: there is no format of this name.
    """
    if name in FORMATS:
        return name
    known = did_you_mean(name, FORMATS) or f"; known: {', '.join(FORMATS)}"
    raise ArgumentError(f"{call}: no format {in_words(name)}{known}")


def parts_from(content: object, format: Format) -> tuple[Part, ...]:  # noqa: A002 -- as everywhere
    """The parts of a message's content: a text, a content block, or a list of both.

    What is of no kind that we know is a `ProviderPart`, which keeps the original.

    Raises:
        ArgumentError: there is no such format.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    checked_format(format, "parts_from()")
    return parts_of(plain(content))


def messages_from(messages: object, format: Format) -> Iterator[Sequence[Message]]:  # noqa: A002
    """For each message of a history, what it holds: of a dict, or of the object of an SDK or a framework.

    One of theirs may be several of ours: Pydantic AI's request has the user's words and results of tools.

    Raises:
        ArgumentError: it is no list of messages, or one of them is none; it says which.
        CodecError: one holds a value that cannot be stored.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise ArgumentError(f"a list of messages is wanted, not {in_words(messages)}")
    read = _READERS[checked_format(format, "messages_from()")].read
    for number, item in enumerate(cast("Iterable[object]", messages)):
        fields = dumped(item, f"messages[{number}]: a message of the format {format!r}")
        yield _known(tuple(read(fields)), fields, number, format)


def messages_in(fields: Json, name: Format) -> tuple[Message, ...]:
    """The content of one message that is JSON already; empty if it is not a message."""
    return tuple(_READERS[name].read(fields))


def response_in(fields: Json, name: Format) -> Response | None:
    """A response that is JSON already; None: it is not a response of this format."""
    return _READERS[name].response(fields)


def _known(read: Sequence[Message], fields: Json, number: int, name: str) -> Sequence[Message]:
    is_empty = fields.get("type") in ("item_reference", "remove") or "parts" in fields
    if read or is_empty:
        return read
    said = {key: fields[key] for key in ("role", "type", "kind") if key in fields}
    raise ArgumentError(f"messages[{number}]: no message of the format {name!r} has {said}")


def response_from(response: object, format: Format) -> Response:  # noqa: A002 -- as everywhere
    """A response of a model: the SDK's or the framework's object, or its JSON.

    Raises:
        ArgumentError: it is none of this format, or it is empty.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    what = f"a response of the format {format!r}"
    fields = dumped(response, what)
    found = _READERS[checked_format(format, "response_from()")].response(fields)
    if found is None:
        raise ArgumentError(f"{what} is wanted; {_said(fields)}")
    if not found.message.content and found.usage is None:
        raise ArgumentError(f"{what} is empty: it has neither content nor usage")
    return found


def _said(fields: Json) -> str:
    error: Any = fields.get("error")
    if isinstance(error, dict):
        return f"this is an error: {cast('Json', error).get('message', 'without a message')}"
    return f"this has {', '.join(sorted(fields)[:6]) or 'nothing'}"
