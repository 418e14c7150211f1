"""The neutral form of a message, into which every format is read: its parts, the blocks made of it, its usage.

At the top is what all formats read with: foreign JSON, where a value of the wrong type gives an empty value, never an
error; and message objects of any framework as JSON, read by their methods and attributes, without importing the
framework.
"""

import dataclasses
import inspect
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from json import dumps, loads
from typing import Any, Final, Literal, TypeAlias, cast

import attrs
import msgspec
from msgspec.structs import replace

from blocks._block import (
    PROVIDER_TAG,
    AssistantCompletion,
    AssistantThinking,
    Block,
    DocumentPart,
    Envelope,
    ImagePart,
    OpaqueBlock,
    Part,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserPrompt,
    UserSteer,
    is_web_url,
    text_of_parts,
)
from blocks._codec import NESTING_MAX, clean_json
from blocks._errors import ArgumentError, CodecError, in_words
from blocks._events import UsageRecorded
from blocks._ids import BlockId, CallId, EventId, TurnId

# Foreign JSON, and objects of frameworks as JSON.


Json: TypeAlias = dict[str, Any]


def obj(value: Any) -> Json:
    """`value` if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objs(value: Any) -> list[Json]:
    """The objects in `value` if it is a list, else none."""
    return [cast("Json", item) for item in items(value) if isinstance(item, dict)]


def items(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def string(value: Any) -> str:
    """`value` if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """`value` if it is a whole number, at least 0; else 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    return 0


def known_fields(fields: Json) -> Json:
    """The fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def tool_input(value: Any) -> Json:
    """A tool's input as an object; some APIs give it as text that must be parsed.

    If it is not an object, or cannot be stored, the result is an object with the text that the model wrote.
    """
    parsed = _parsed(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return cast("Json", parsed)
    if value is None or parsed == "":
        return {}
    return {"input": value if isinstance(value, str) else msgspec.json.encode(value).decode()}


def _parsed(text: str) -> object:
    if not text.strip():
        return ""
    try:
        return clean_json(loads(text))
    except (ValueError, RecursionError, CodecError):
        return text


def raw_arguments(arguments: Any) -> Json:
    """Data that must be sent back with a call: the arguments as the model wrote them, if they cannot be derived from
    the parsed input; else empty."""
    if not isinstance(arguments, str):
        return {}
    return {} if arguments == spelled(tool_input(arguments)) else {"arguments": arguments}


def spelled(arguments: Json) -> str:
    """Arguments as text, if the model's own text is not known."""
    return dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def json_part(value: Any) -> TextPart:
    """A JSON value as a text."""
    return TextPart(text=msgspec.json.encode(value).decode())


# Objects as JSON.


_DUMPS: Final = ("to_dict", "model_dump")
_PLAIN: Final = str | int | float | bool | None


def dumped(value: object, wanted: str) -> Json:
    """The JSON of a message: a dict, or an object of an SDK or a framework, with any objects inside.

    Raises:
        ArgumentError: it has no fields; the message begins with `wanted`.
        CodecError: it has a value that cannot be stored; the message says where.
    """
    _refuse_awaitable(value, wanted)
    if isinstance(value, _PLAIN | bytes | type | Sequence):
        raise ArgumentError(f"{wanted}, not {in_words(value)}")
    fields = plain(value)
    if not isinstance(fields, dict):
        raise ArgumentError(f"{wanted}, not {in_words(value)}")
    return cast("Json", fields)


def as_json(response: object, wanted: str = "expected a response") -> Json:
    """The JSON of an SDK's object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        ArgumentError: it is neither; the message begins with `wanted`.
    """
    _refuse_awaitable(response, wanted)
    if isinstance(response, Mapping):
        return dict(cast("Mapping[str, Any]", response))
    if (fields := _dumped(response)) is None:
        raise ArgumentError(f"{wanted}, not {in_words(response)}")
    return dict(fields)


def _refuse_awaitable(value: object, wanted: str) -> None:
    if inspect.isawaitable(value):
        raise ArgumentError(f"{wanted}, not {in_words(value)}: await it first")


UNENCODABLE: Final = (ValueError, TypeError, NotImplementedError, RecursionError)
"""What the encoder raises for a value that is no JSON: a wrong text, another type, an integer that is too large, a loop."""


def plain(value: object) -> Any:
    """Any value as JSON.

    Raises:
        CodecError: it has a value that cannot be stored; the message says where.
    """
    try:
        data = _encoder.encode(value)
        # A null may have been a NaN; then, and if the value is nested deeply, it is converted step by step below.
        if b"null" not in data and data.count(b"[") + data.count(b"{") < NESTING_MAX:
            return msgspec.json.decode(data)
    # If the encoder fails, the steps below convert the value, or their error says where it is wrong.
    except UNENCODABLE:
        pass
    return clean_json(_json(value, 0))


def fingerprint(value: object) -> bytes | None:
    """A hash of a value's JSON; None: it has none, or only step by step."""
    try:
        return sha256(_encoder.encode(value)).digest()
    except UNENCODABLE:
        return None


def _hook(value: object) -> Any:
    own = _fields(value)
    if own is None:
        # What msgspec expects from a hook for an unknown type.
        raise NotImplementedError(type(value).__name__)
    return own


_encoder = msgspec.json.Encoder(enc_hook=_hook)


def _json(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):  # first, because an Enum may also be a str
        return _json(value.value, depth + 1)
    if isinstance(value, _PLAIN) or depth > NESTING_MAX:
        return value
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return {
            key if isinstance(key, int) else str(key): _json(inner, depth + 1)
            for key, inner in fields
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(inner, depth + 1) for inner in cast("Sequence[Any]", value)]
    own = _fields(value)
    return str(value) if own is None else _json(own, depth)


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of an object; None if it has none."""
    if isinstance(value, type):
        return None
    if (dump := _dumped(value)) is not None:
        return dump
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    own: object = getattr(value, "__dict__", None)
    if isinstance(own, dict) and own:
        fields = cast("dict[str, Any]", own).items()
        return {name: inner for name, inner in fields if not name.startswith("_")}
    return None


def _dumped(value: Any) -> Mapping[str, Any] | None:
    """What `to_dict` or `model_dump` of an object returns; None if it has neither."""
    for name in _DUMPS:
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            # An SDK's model warns about content that it does not know; such content is kept unchanged.
            is_sdk = name == "to_dict" and hasattr(value, "model_dump")
            fields: object = dump(warnings=False) if is_sdk else dump()
            if isinstance(fields, Mapping):
                return cast("Mapping[str, Any]", fields)
    return None


# Messages.


Format: TypeAlias = Literal[
    "anthropic", "openai.chat", "openai.responses", "gemini", "langchain", "pydantic_ai"
]
"""A format of messages: a provider's API or a framework."""
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Thought(msgspec.Struct, frozen=True, kw_only=True):
    """The model's thinking, as its provider sent it."""

    value: Json
    source: str = ""
    """The foreign id of this piece, if pieces have ids; also in the classes below."""


class ModelText(msgspec.Struct, frozen=True, kw_only=True):
    """Text of the model."""

    text: str
    provider: Json = msgspec.field(default_factory=dict[str, Any])
    """Data of the provider that must be sent back; also in `Call`."""
    source: str = ""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of the model."""

    call_id: str
    name: str
    input: Json
    provider: Json = msgspec.field(default_factory=dict[str, Any])
    source: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool."""

    call_id: str
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    source: str = ""


class Verbatim(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the model or its provider that is stored and sent back without being interpreted."""

    value: Json
    vendor: str = ""
    """Whose format it has; empty: Anthropic's."""
    source: str = ""


Content: TypeAlias = Part | Thought | ModelText | Call | Result | Verbatim


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a history; or one item, in formats that list items."""

    role: Role
    id: str = ""
    """Its foreign id; empty if it has none."""
    content: tuple[Content, ...] = ()
    """In order. Of a user: parts and results; of an assistant: everything except results."""
    instructions: str = ""
    """A part of the system prompt that comes with every request; the newest applies."""
    title: str = ""
    """The role of an operator's message by its name in the format, `system` or `developer`."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """One response of a model."""

    message: Message
    id: str = ""
    """The provider's id of it; empty if it has none."""
    model: str = ""
    usage: UsageRecorded | None = None
    """Its tokens; the fields `id` and `at` are placeholders. None: not reported."""
    is_cut_off: bool = False
    """Whether it ended before the model had finished: a call at its end may be incomplete."""
    stop: str = ""
    """Why the model stopped, in the terms of the Messages API (`end_turn`, `tool_use`, `max_tokens`, `refusal`, ...), or
    else in lower case; empty: not said, or the format is a framework's."""

    @property
    def complete(self) -> "tuple[Content, ...]":
        """Its content; if it was cut off, without a call at the end, whose input may be incomplete (see the providers'
        documentation of stop reasons)."""
        content = self.message.content
        is_broken = self.is_cut_off and content and isinstance(content[-1], Call)
        return content[:-1] if is_broken else content


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What an API calls the things of a conversation: the names that its reader, encoder, rules and fake server share."""

    name: Format
    """The API's name as a format and as a provider."""
    title: str
    """What a response of the API is called in errors."""
    output: str
    """The field of a response with what the model wrote."""
    calls: Mapping[str, str]
    """The type of a call's result, by the type of the call."""
    thinking: frozenset[str] = frozenset()
    """Types of thinking; empty: it has the type of a text."""
    seal: str = ""
    """The field with which a provider recognizes its own thinking; empty: there is none."""
    mark: str = ""
    """The field of a cache mark; empty: there are no marks."""
    stops: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Why the model stopped in the terms of the Messages API, by the API's own term, where these differ."""


def dialogue(role: Any) -> Role | None:
    """The role of a message, by its name in any format; None: not a message for a model."""
    match role:
        case "system" | "developer":
            return "system"
        case "user" | "human":
            return "user"
        case "assistant" | "ai" | "AIMessageChunk" | "model":
            return "assistant"
        case "tool" | "function" | "ipython":
            return "tool"
        case _:
            return None


# Blocks of messages.


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The blocks and the usage of a model's response."""

    id: str
    """The provider's id of the response; empty if it has none."""
    blocks: tuple[Block, ...]
    usage: UsageRecorded | None
    """The tokens that it used, without time and estimate; None: not reported."""


def answer_of(response: Response, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """A response as blocks of one turn, without a call at its end that may be incomplete."""
    maker = BlockMaker(new_id=new_id, turn=turn)
    blocks = tuple(maker.spoken(replace(response.message, content=response.complete)))
    usage = response.usage
    if usage is not None:
        usage = replace(usage, model=response.model, response=response.id)
    return Answer(id=response.id, blocks=blocks, usage=usage)


@attrs.frozen(kw_only=True)
class BlockMaker:
    """Makes blocks of one turn from messages."""

    new_id: Callable[[], BlockId]
    turn: TurnId

    def spoken(self, message: Message) -> Iterator[Block]:
        """The blocks of a model's message."""
        for content in message.content:
            if isinstance(content, ModelText | Thought | Call | Verbatim):
                yield self._spoken(content, message.id)

    def _spoken(self, content: ModelText | Thought | Call | Verbatim, response: str) -> Block:
        own, turn, source = self.new_id(), self.turn, content.source or response
        match content:
            case ModelText(text=text):
                return AssistantCompletion(
                    id=own,
                    turn=turn,
                    source=source,
                    response=response,
                    text=text,
                    provider=content.provider,
                )
            case Thought(value=value):
                return AssistantThinking(
                    id=own, turn=turn, source=source, response=response, provider=value
                )
            case Call():
                return ToolCall(
                    id=own,
                    turn=turn,
                    source=source,
                    response=response,
                    call_id=CallId(content.call_id),
                    name=content.name or "tool",
                    input=content.input,
                    provider=content.provider,
                )
            case Verbatim(value=value):
                fields: Json = {"id": own, "turn": turn, "author": "assistant", "source": source}
                kind = ".".join(filter(None, (content.vendor, str(value.get("type") or "part"))))
                fields |= {"response": response, "value": value}
                return OpaqueBlock(f"{PROVIDER_TAG}{kind}", fields)

    def words(self, message: Message, kind: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        """The block of a user's message; none if it is empty.

        If the first part is text, it becomes the block's text. All other parts stay separate, because they are sent
        again as separate parts.
        """
        parts = parts_in(message.content)
        text = text_of_parts(parts[:1]) if isinstance(next(iter(parts), None), TextPart) else ""
        others = tuple(parts[1:] if text else parts)
        if text or others:
            own, source = self.new_id(), message.id
            yield kind(id=own, turn=self.turn, source=source, text=text, parts=others)

    def operator(self, message: Message) -> Iterator[Block]:
        """The block of an operator's message within a history; none if it is empty."""
        from blocks.formats._client_texts import operator_text  # only histories have such messages

        text = text_of_parts(parts_in(message.content))
        if text.strip():
            yield SystemMessage(
                id=self.new_id(),
                turn=self.turn,
                source=message.id,
                text=text,
                role=message.title,
                standing=operator_text(text).standing if message.title else "",
            )

    def result(self, result: Result, source: str) -> Block:
        """The block of a tool's result."""
        return ToolResult(
            id=self.new_id(),
            turn=self.turn,
            source=result.source or source,
            call_id=CallId(result.call_id),
            parts=result.parts,
            is_error=result.is_error,
            envelope=Envelope(outcome="failure" if result.is_error else "success"),
        )


def parts_in(content: Sequence[Content]) -> list[Part]:
    """The items of a message's content that are parts."""
    return [
        part
        for part in content
        if isinstance(part, TextPart | ImagePart | DocumentPart | ProviderPart)
    ]


# Parts of the content of a message, in the forms of any format.
#
# The forms differ, so one table can read all of them. Content of an unknown form becomes a `ProviderPart` with the
# original; if a provider does not accept it, the request says so in its notices.


PDF: Final = "application/pdf"
_URLS: Final = ("url", "image_url", "file_url", "fileUri", "file_uri")
_DATA: Final = ("data", "base64", "file_data")
_MEDIA_TYPES: Final = ("media_type", "mime_type", "mimeType")
_NESTED: Final = ("inlineData", "inline_data", "fileData", "file_data")
_STORE: Final = "generativelanguage.googleapis.com/"
"""The server of Gemini's own files, which no other provider may fetch."""
_MARKS: Final = frozenset({"cache-point", "cachePoint"})
"""Kinds of items that are marks in the prompt, not content."""


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of content given as JSON: a text, a content block, or a list of both; blank text is left out."""
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return tuple(part for item in items if (part := part_of(item)) is not None)


def part_of(item: Any) -> Part | None:
    """The part of one content block; None if it is empty."""
    if isinstance(item, str):
        return TextPart(text=item) if item.strip() else None
    block = obj(item)
    kind = kind_of(block)
    if not block or kind in _MARKS:
        return None
    if (text := block.get("text")) is not None and isinstance(text, str):
        return TextPart(text=text) if text.strip() else None
    read = _readers(kind) or _gemini(block)
    return read(block) if read else ProviderPart(value=block)


def kind_of(block: Json) -> str:
    """The kind that a content block states; empty if it states none."""
    return string(block.get("type")) or string(block.get("kind"))


def _readers(kind: str) -> Callable[[Json], Part] | None:
    if "image" in kind:
        return _image
    if kind == "refusal":
        return _refusal
    return _FILES.get(kind)


def _gemini(block: Json) -> Callable[[Json], Part] | None:
    """The reader for a part of Gemini, which has a field for its kind instead of a type; None if it is not one."""
    inner = next((name for name in _NESTED if obj(block.get(name))), "")
    return (lambda part: _nested(obj(part[inner]), part)) if inner else None


def _nested(source: Json, block: Json) -> Part:
    """A part with data inline or with the URL of a file."""
    url, media_type = _url(source), _media_type(source)
    if _STORE in url:
        return ProviderPart(value=block)
    if media_type.startswith("image/") and is_web_url(url):
        return ImagePart(media_type=media_type, url=url)
    return _file(source, block)


def _refusal(block: Json) -> Part:
    text = string(block.get("refusal"))
    return TextPart(text=text) if text.strip() else ProviderPart(value=block)


def _image(block: Json) -> Part:
    """An image of Anthropic (`source`), of OpenAI (`image_url`, a text or an object), or of a framework."""
    source = obj(block.get("source")) or block
    if data := _first(source, _DATA):
        return ImagePart(media_type=_media_type(source) or "image/png", data=_standard(data))
    url = _url(source)
    if is_web_url(url):
        return ImagePart(url=url)
    media_type, data = _inline(url)
    if media_type is None:
        return ProviderPart(value=block)
    # The data is not checked: redaction may have made it invalid, and the code that decodes it must handle that.
    return ImagePart(media_type=media_type or "image/png", data=data)


def _document(block: Json) -> Part:
    """A document of Anthropic."""
    source = obj(block.get("source"))
    # content blocks and citations are more than our parts can represent
    if source.get("type") == "content" or obj(block.get("citations")).get("enabled"):
        return ProviderPart(value=block)
    if string(source.get("type")) == "text":
        return TextPart(text=string(source.get("data")))
    return _file({**source, "name": block.get("title")}, block)


def _any_file(block: Json) -> Part:
    """A file of OpenAI (`file` with an object, `input_file`), or of a framework."""
    return _file(obj(block.get("file")) or obj(block.get("source")) or block, block)


def _file(source: Json, block: Json) -> Part:
    name = _first(source, ("filename", "name", "identifier", "displayName", "display_name"))
    url, data, media_type = _url(source), _first(source, _DATA), _media_type(source)
    if is_web_url(url) and media_type in ("", PDF):
        return DocumentPart(url=url, name=name)
    if data.startswith("data:"):
        url = data
    if url:
        inline_type, data = _inline(url)
        media_type = inline_type or media_type
    if not data:
        return ProviderPart(value=block)
    if media_type.startswith("image/"):
        return ImagePart(media_type=media_type, data=_standard(data))
    if media_type.startswith("text/"):
        return _text_file(data, name) or ProviderPart(value=block)
    if media_type in ("", PDF):
        return DocumentPart(data=_standard(data), name=name)
    return ProviderPart(value=block)


def _text_file(data: str, name: str) -> Part | None:
    try:
        text = b64decode(_standard(data), validate=True).decode()
    except ValueError:
        return None
    return DocumentPart(media_type="text/plain", data=text, name=name)


def _text(block: Json) -> Part:
    """A text to which a framework has added fields."""
    text = string(block.get("content"))
    return TextPart(text=text) if text.strip() else ProviderPart(value=block)


_FILES: Final[Mapping[str, Callable[[Json], Part]]] = {
    "document": _document,
    "file": _any_file,
    "input_file": _any_file,
    "document-url": _any_file,
    "binary": _any_file,
    "text-content": _text,
    "structured-content": _text,
}


def _first(source: Json, names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := string(source.get(name)))), "")


def _media_type(source: Json) -> str:
    return _first(source, _MEDIA_TYPES)


def _url(source: Json) -> str:
    url = next((source[name] for name in _URLS if source.get(name)), "")
    return string(obj(url).get("url")) or string(url)


def _inline(url: str) -> tuple[str | None, str]:
    """The media type and the base64 data of a data URL; None and empty if it is not one."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None, ""
    return head[5:-7].partition(";")[0], data


def _standard(data: str) -> str:
    """Base64 in the standard alphabet, without the beginning of a data URL."""
    data = _inline(data)[1] or data
    return data.replace("-", "+").replace("_", "/") if "-" in data or "_" in data else data


# Usage.


def spent(*, uncached: int, read: int, written: int, output: int) -> UsageRecorded:
    """A `UsageRecorded` with these tokens; its other fields are placeholders."""
    return UsageRecorded(
        id=EventId(""),
        at=0.0,
        uncached=uncached,
        cache_read=read,
        cache_write=written,
        output=output,
    )


_LIST_PRICED: Final = frozenset({"", "auto", "default", "global", "not_available", "standard"})
"""Service tiers, speeds and regions for which the list prices hold."""


def tier_of(usage: Json, response: Json | None = None) -> str:
    """The service tier, speed or region for which the list prices do not hold; empty if they do."""
    names = ("service_tier", "speed", "inference_geo")
    values = (string(fields.get(name)) for fields in (usage, response or {}) for name in names)
    return " ".join(name for name in values if name not in _LIST_PRICED)
