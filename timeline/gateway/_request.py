"""A client's request: its API, who sent it, and its JSON, of which only the necessary parts are parsed.

Unchanged parts stay byte for byte the same. Cache marks move through a conversation from request to request, so
messages are compared with earlier ones without their marks.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import attrs
import msgspec

from blocks.formats import Format, items, obj, objs
from render import Json


@attrs.frozen(kw_only=True)
class Api:
    """One API: the path of its requests, and the field with the conversation."""

    provider: Format
    path: str
    """The end of the path of its requests."""
    items: str
    """The field with the conversation."""
    prompt: str = ""
    """The field with the system prompt; empty: it is part of the conversation."""
    counts: str = ""
    """The end of the path of requests that only count tokens; empty: there is none."""


APIS: Final = (
    Api(
        provider="anthropic",
        path="/messages",
        items="messages",
        prompt="system",
        counts="/messages/count_tokens",
    ),
    Api(
        provider="openai.responses",
        path="/responses",
        items="input",
        prompt="instructions",
        counts="/responses/input_tokens",
    ),
    Api(provider="openai.chat", path="/chat/completions", items="messages"),
)
VERSION: Final = "/v1"
"""What the paths of these APIs begin with, unless the client takes it to be part of its base URL."""
BARE: Final = frozenset({"models", *(api.path.split("/")[1] for api in APIS)})
"""What paths begin with otherwise."""
ANTHROPIC_HEADERS: Final = ("anthropic-version", "x-api-key")
"""Headers that only Anthropic's clients send; they identify the API of a path that both vendors have."""
_ANTHROPICS: Final = re.compile(rf"({VERSION})*/messages(/|$)")
"""Matches paths that only Anthropic has; OpenAI has others with messages in them."""
GOOGLE_HEADER: Final = "x-goog-api-key"
_GOOGLES: Final = re.compile(r"/models/[^/]+:\w+$")
"""Matches the paths of Gemini's methods, such as `/v1beta/models/gemini-3-pro:generateContent`."""


def api_at(path: str, headers: Mapping[str, str]) -> Api | None:
    """The API whose requests go to this path; None: there is none."""
    apis = APIS if maker_of(path, headers) == "anthropic" else APIS[1:]  # only the first is its own
    return next((api for api in apis if path.endswith(api.path)), None)


def counting_at(path: str) -> Api | None:
    """The API that counts tokens at this path; None: there is none."""
    return next((api for api in APIS if api.counts and path.endswith(api.counts)), None)


def maker_of(path: str, headers: Mapping[str, str]) -> str:
    """The vendor of a path: `anthropic`, `openai`, or `google`, whose API the gateway does not know."""
    if GOOGLE_HEADER in headers or _GOOGLES.search(path):
        return "google"
    is_anthropics = any(name in headers for name in ANTHROPIC_HEADERS)
    return "anthropic" if is_anthropics or _ANTHROPICS.match(path) else "openai"


_SESSIONS: Final = (
    ("claude-code", "x-claude-code-session-id", "x-claude-code-agent-id"),
    ("codex", "session-id", "thread-id"),
    ("codex", "session_id", "conversation_id"),
    ("opencode", "x-session-id", ""),
    ("opencode", "x-opencode-session", ""),
)
"""Clients, with the headers that name their session and the agent in it."""
LENGTH_MAX: Final = 80
"""Largest number of characters of a timeline's name that come from one header."""


def speaker_of(headers: Mapping[str, str]) -> str:
    """The sender of a request, as far as its headers (lower case) name it: the client, its session and, unless it is the
    main one, the agent in it. The names of its timelines begin with it."""
    for client, session_header, agent_header in _SESSIONS:
        if session := _word(headers.get(session_header)):
            agent = _word(headers.get(agent_header))
            return "-".join(filter(None, (client, session, agent if agent != session else "")))
    return "agent"


def _word(value: Any) -> str:
    text = str(value or "")[:LENGTH_MAX]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)


# The body.


_MARK: Final = re.compile(
    rb',\s*"cache_control"\s*:\s*(?:\{[^{}]*\}|null)|"cache_control"\s*:\s*(?:\{[^{}]*\}|null)\s*,?'
)
"""A cache mark as a field of an object. Inside a text its quotes would be escaped."""
_NAME: Final = b'"cache_control"'
_LEADS: Final = ("system", "developer")
MARKS_MAX: Final = 4
"""Largest number of cache marks in a request to Anthropic."""
_BILLING: Final = "x-anthropic-billing-header"
"""The beginning of a system prompt block that the provider treats as a header."""
_HELD: Final = (b'"compaction_trigger"', b'"item_reference"')
"""Items of OpenAI's Responses API with which a client refers to content stored at the provider."""
_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class UnreadableError(Exception):
    """It is not a request of this API, or one that cannot be rendered; it is forwarded unchanged."""


def unmarked(message: bytes) -> bytes:
    """A message without its cache marks."""
    return _MARK.sub(b"", message) if _NAME in message else message


def is_same(message: bytes, other: bytes) -> bool:
    """Whether two messages are equal except for their cache marks."""
    return message == other or unmarked(message) == unmarked(other)


def _is_held(item: bytes) -> bool:
    """Whether an item has one of the types in `_HELD`; these words may also occur in its text."""
    fields: Any = msgspec.json.decode(item)
    kind = cast("Json", fields).get("type") if isinstance(fields, dict) else None
    return isinstance(kind, str) and f'"{kind}"'.encode() in _HELD


def _listed(field: bytes, api: Api) -> bytes:
    """The list of a conversation; a text of the user's, which OpenAI's Responses API takes for one, as such a list."""
    is_text = api.provider == "openai.responses" and field[:1] == b'"'
    return b'[{"role":"user","content":%b}]' % field if is_text else field


def _leads(api: Api, items: Sequence[bytes]) -> int:
    if api.provider == "anthropic":
        return 0
    for number, item in enumerate(items):
        fields = msgspec.json.decode(item)
        if not isinstance(fields, dict) or cast("Json", fields).get("role") not in _LEADS:
            return number
    return len(items)


@attrs.define
class Body:
    """The body of a client's request."""

    api: Api
    raw: bytes
    fields: dict[str, bytes]
    """The JSON of each field except the conversation."""
    items: list[bytes]
    """The JSON of each message or item."""
    leads: int
    """How many of the first ones are the system prompt, in APIs that have it there."""

    @classmethod
    def of(cls, raw: bytes, api: Api) -> "Body":
        """Read a body.

        Raises:
            UnreadableError: it does not contain a complete conversation.
        """
        try:
            raw_fields = _RAW_FIELDS.decode(raw)
            messages = [*map(bytes, _RAW_LIST.decode(_listed(bytes(raw_fields[api.items]), api)))]
        except (msgspec.DecodeError, KeyError) as error:
            raise UnreadableError(f"its body is not JSON with a list {api.items!r}") from error
        fields = {
            name: b"" if name == api.items else bytes(value) for name, value in raw_fields.items()
        }
        body = cls(api, raw, fields, messages, _leads(api, messages))
        if not messages:
            raise UnreadableError(f"its list {api.items!r} is empty")
        if body.value("previous_response_id") or body.value("conversation"):
            raise UnreadableError("the provider stores the conversation")
        names_held = api.provider == "openai.responses" and any(kind in raw for kind in _HELD)
        if names_held and any(map(_is_held, messages)):
            raise UnreadableError("an item refers to content that the provider stores")
        return body

    def value(self, name: str) -> Any:
        """A field, parsed; None: there is none."""
        raw = self.fields.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def history(self, start: int = 0) -> list[Json]:
        """The messages from `start` on, parsed, without an item at the beginning that offers tools."""
        read: list[Json] = [msgspec.json.decode(raw) for raw in self.items[start:]]
        leads = max(0, self.leads - start)
        return [*map(_silent, read[:leads]), *read[leads:]]

    def system(self) -> list[Json]:
        """The system prompt as text blocks, without blocks that are headers."""
        prompt = self.value(self.api.prompt) if self.api.prompt else None
        if isinstance(prompt, str):
            return [{"type": "text", "text": prompt}]
        blocks = cast("list[Json]", prompt or [])
        return [block for block in blocks if not str(block.get("text")).startswith(_BILLING)]

    def tools(self) -> list[Json]:
        """The tools, including those offered by an item at the beginning of the conversation."""
        leading = [msgspec.json.decode(raw) for raw in self.items[: self.leads]]
        return [
            *objs(self.value("tools")),
            *(tool for item in leading for tool in objs(item.get("tools"))),
        ]

    def control(self) -> Json | None:
        """The newest cache mark that the client set; None: it sets none."""
        if isinstance(control := self.value("cache_control"), dict):
            return cast("Json", control)
        fixed = (self.fields[name] for name in ("system", "tools") if name in self.fields)
        for raw in (*reversed(self.items), *fixed):
            if _NAME in raw and (marks := _marks_in(msgspec.json.decode(raw))):
                return marks[-1]
        return None

    def with_messages(self, messages: Sequence[object], more: Json) -> bytes:
        """The body with another conversation and with additional fields; everything else is unchanged."""
        own_fields = {name: msgspec.Raw(value) for name, value in self.fields.items()}
        fields: dict[str, object] = {**more, **own_fields}
        fields[self.api.items] = messages
        if self.api.provider == "anthropic":
            fields.pop("cache_control", None)
            own = sum(len(_marks_in(message)) for message in messages)
            self._thin(fields, MARKS_MAX - own)
        return msgspec.json.encode(fields)

    def _thin(self, fields: dict[str, object], room: int) -> None:
        """Remove the client's marks on tools and system blocks beyond `room`, the first ones first: a later mark
        also covers the content before it."""
        sections = {
            n: self.value(n) for n in ("tools", "system") if _NAME in self.fields.get(n, b"")
        }
        surplus = sum(len(_marks_in(section)) for section in sections.values()) - room
        for name, section in sections.items():
            if surplus <= 0:
                return
            for block in _marked_in(section):
                if surplus > 0:
                    del block["cache_control"]
                    surplus -= 1
            fields[name] = section


def with_control(messages: Sequence[Json], control: Json | None) -> list[Json]:
    """The messages with cache marks in the client's form; messages without a mark are the same objects."""
    if control is None:
        return list(messages)
    return [_controlled(m, control) if _marked_in(m) else m for m in messages]


def _silent(item: Json) -> Json:
    if item.get("type") != "additional_tools":
        return item
    return {"type": "message", "role": item["role"], "content": []}


def _controlled(message: Json, control: Json) -> Json:
    content: list[Json] = message["content"]
    marked = [{**c, "cache_control": control} if "cache_control" in c else c for c in content]
    return {**message, "content": marked}


def _marks_in(value: object) -> list[Json]:
    return [block["cache_control"] for block in _marked_in(value)]


def _marked_in(value: object) -> list[Json]:
    """The blocks with a cache mark in a list of blocks, or in a message."""
    content = items(obj(value).get("content") if isinstance(value, dict) else value)
    marked = (block for block in content if "cache_control" in block)
    return [block for block in objs([*marked]) if isinstance(block["cache_control"], dict)]


# Compressed bodies.


DECODED_BYTES_MAX: Final = 2**26
"""Largest size of a decoded body."""


class RequestTooLargeError(Exception):
    """A request that is larger than any provider accepts."""


def decoded(raw: bytes, coding: str) -> bytes:
    """A body with its content coding removed (RFC 9110, 8.4).

    Raises:
        UnreadableError: its content encoding is not supported, it is damaged, or it would become too large.
    """
    match coding.strip().lower():
        case "" | "identity":
            return raw
        case "gzip" | "x-gzip":
            return _inflated(raw, 16 + zlib.MAX_WBITS)
        case "deflate":
            return _inflated(raw, zlib.MAX_WBITS)
        case "zstd":
            return _zstd(raw)
        case other:
            raise UnreadableError(f"its content encoding is {other!r}")


def _inflated(raw: bytes, bits: int) -> bytes:
    unpack = zlib.decompressobj(bits)
    try:
        data = unpack.decompress(raw, DECODED_BYTES_MAX)
    except zlib.error as error:
        raise UnreadableError(f"its compressed body is damaged ({error})") from error
    if unpack.unconsumed_tail or not unpack.eof:
        raise UnreadableError("its compressed body is damaged, or too large")
    return data


def _zstd(raw: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
            data = reader.read(DECODED_BYTES_MAX + 1)
    except zstandard.ZstdError as error:
        raise UnreadableError(f"its compressed body is damaged ({error})") from error
    if len(data) > DECODED_BYTES_MAX:
        raise UnreadableError("its unpacked body is too large")
    return data
