"""Blocks: immutable pieces of a conversation, such as a prompt, a completion, a tool call, its result or a note.

A block's tag is its name on disk and in SQL.  It is a plain string, so a class or a package can be renamed without
changing stored bytes.  A released tag never changes its meaning.

First come what blocks consist of: the parts of their content, and the envelope of a tool result. Then the kinds.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from blocks._ids import ArtifactId, BlockId, CallId, TurnId
from blocks._summary import Digest, StructuredSummary

# Parts: content of a block besides its text. The ids of artifacts, which are content stored beside the log.


class TextPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text as the model reads it."""

    text: str


class ImagePart(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="image", omit_defaults=True
):
    """An image, inline as base64 or by URL."""

    media_type: str = "image/png"
    data: str = ""
    """Base64, exactly as it was read; may be invalid in a redacted log."""
    url: str = ""


class DocumentPart(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="document", omit_defaults=True
):
    """A PDF, inline as base64 or by URL; or, with `text/plain`, a text."""

    media_type: str = "application/pdf"
    data: str = ""
    """Base64; for `text/plain`, the text itself."""
    url: str = ""
    name: str = ""


class ProviderPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="provider"):
    """A content block of the provider (`search_result`, `container_upload`, a document with citations), verbatim."""

    value: dict[str, Any]


_INLINE_SHOWN: Final = 60
"""How many characters of a data URL are shown."""
_WEB_URL: Final = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)

Part: TypeAlias = TextPart | ImagePart | DocumentPart | ProviderPart
"""A piece of a block's content."""


def is_web_url(url: str) -> bool:
    """Whether a provider could fetch this URL: http or https, a host, no white space."""
    return url.isprintable() and _WEB_URL.fullmatch(url) is not None


def text_of_parts(parts: Sequence[Part]) -> str:
    """The text of `parts`, joined by line breaks; a part without text is named in brackets."""
    return "\n".join(_text(part) for part in parts)


def _text(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ImagePart():
            return "[image]"
        case DocumentPart():
            return f"[document {part.name}]" if part.name else "[document]"
        case ProviderPart():
            words = "\n".join(text for text in _words(part.value) if text.strip())
            return words or f"[{_part_name(part.value)}]"


def _part_name(value: dict[str, Any]) -> str:
    """The kind of a part without text, and its URL if there is one."""
    kind = str(value.get("type") or value.get("kind") or "part")
    url = _url_in(value) or _url_in(value.get("source"))
    if url.startswith("data:") and len(url) > _INLINE_SHOWN:
        url = f"{url.partition(',')[0][:_INLINE_SHOWN]},…"
    what = next((word for word in ("image", "document") if word in kind), kind)
    return f"{what} at {url}" if url else kind


def _url_in(value: object) -> str:
    """The first URL in an object, in one of its fields or in an object within one of them; empty if there is none."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for name in ("url", "image_url", "file_url"):
        url: object = fields.get(name)
        url = cast("dict[str, Any]", url).get("url") if isinstance(url, dict) else url
        if isinstance(url, str) and url:
            return url
    return ""


def _words(value: dict[str, Any]) -> Iterator[str]:
    """The texts of a search result, or of a document that contains its text."""
    if value.get("type") not in ("search_result", "document"):
        return
    source: object = value.get("source")
    within = cast("dict[str, Any]", source) if isinstance(source, dict) else value
    texts: list[object] = [value.get("title"), value.get("context"), source, within.get("content")]
    texts += [within.get("data")] if within.get("type") == "text" else []
    inner: object = within.get("content")
    for item in cast("list[Any]", inner) if isinstance(inner, list) else []:
        texts += [cast("dict[str, Any]", item).get("text")] if isinstance(item, dict) else []
    yield from (text for text in texts if isinstance(text, str))


def leaves(value: Any) -> str:
    """All keys, strings and numbers inside a JSON value, one per line, without JSON's escapes."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:  # a loop, not recursion: foreign input may be nested deeper than Python's stack
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, dict):
            for key, inner in reversed(cast("dict[Any, Any]", item).items()):
                stack += (inner, str(key))
        elif isinstance(item, list | tuple):
            stack += reversed(cast("Sequence[Any]", item))
        elif item is not None and not isinstance(item, bool):
            out.append(str(item))
    return "\n".join(out)


# Artifacts.

Sensitivity: TypeAlias = Literal["public", "internal", "confidential", "restricted"]
"""Who may see a piece of content; `confidential` and `restricted` content is encrypted at rest and never comes back
into a prompt by itself."""

ENCRYPTED: Final[frozenset[Sensitivity]] = frozenset({"confidential", "restricted"})
"""For these sensitivities, the content of a result is kept out of the log, in an encrypted artifact."""
ID_CHARACTERS: Final = 32
_PREFIX: Final = "art-"
_ID: Final = re.compile(rf"(?<![\w-]){_PREFIX}[0-9a-f]{{{ID_CHARACTERS}}}(?![\w-])")


def artifact_id(content: bytes) -> ArtifactId:
    """The id of this content: equal content has equal ids, on every machine."""
    return artifact_id_of_hash(sha256(content).hexdigest())


def artifact_id_of_hash(digest: str) -> ArtifactId:
    """The id of the content with this sha256, in hex; for content that is never whole in memory."""
    return ArtifactId(f"{_PREFIX}{digest[:ID_CHARACTERS]}")


def artifact_ids_in(text: str) -> tuple[ArtifactId, ...]:
    """The artifact ids that a text names as whole tokens, each once, in order."""
    ids: list[str] = _ID.findall(text) if _PREFIX in text else []
    return tuple(dict.fromkeys(map(ArtifactId, ids)))


# The envelope of a tool result: what is known about it besides its content.
#
# It keeps a result useful after its content has left the prompt.  The prompt still shows the outcome and the key
# fields; the durability says whether the content may be cleared; the determinism says whether reading the source
# again would give the same content.


Outcome: TypeAlias = Literal["success", "failure", "partial"]
"""How a call ended."""
Durability: TypeAlias = Literal["ephemeral", "anchoring", "replayable", "non-replayable"]
"""How a result may be shortened when space is short."""
ToolKind: TypeAlias = Literal["read", "write", "command", "search", "web", "other"]
"""What a call does; the digest lists calls by this kind, and it decides whether two calls ask for the same."""

HASH_CHARACTERS: Final = 16
"""Hexadecimal digits of a SHA-256 that are kept; they suffice to detect a change."""


class Determinism(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a source when a tool read it, which shows later whether the source has changed."""

    content_hash: str = ""
    etag: str = ""
    mtime: float = 0.0
    """Seconds since the epoch."""
    version: str = ""

    @classmethod
    def of(cls, content: str | bytes) -> "Determinism":
        """The state of a source for which only its content is known."""
        data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
        return cls.of_sha256(sha256(data).hexdigest())

    @classmethod
    def of_sha256(cls, digest: str, *, mtime: float = 0.0) -> "Determinism":
        """The same, given the hash of the content."""
        return cls(content_hash=digest[:HASH_CHARACTERS], mtime=mtime)

    def has_changed(self, current: "Determinism") -> bool:
        """Whether the source may have changed: decided by the strongest field that both states have.

        If they have no field in common, the source counts as changed.
        """
        for name in ("content_hash", "etag", "mtime", "version"):
            then, now = getattr(self, name), getattr(current, name)
            if then and now:
                return bool(then != now)
        return True


class Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about a tool result besides its content."""

    outcome: Outcome = "success"
    key_fields: dict[str, Any] = {}
    """Small facts that stay when the content is cleared: an exit status, a count, an id."""
    durability: Durability = "anchoring"
    """How the content may be shortened when space is short: `ephemeral` may be cleared; `anchoring` keeps a summary and
    its key fields; `replayable` may be cleared while its source is unchanged; `non-replayable` is moved to the
    artifact store or kept."""
    determinism: Determinism = Determinism()
    """The state of the source at the time of the call; see `Determinism.has_changed`."""
    sensitivity: Sensitivity = "internal"
    kind: ToolKind | None = None
    """What the call did, as the tool declared it; None: what its name suggests, see `tool_kind`."""
    target: str = ""
    """The argument that names the object of the call: a path, a query, an id; empty: found as for any tool, see
    `tool_target`."""
    started_at: float = 0.0
    ended_at: float = 0.0


# Fields of a JSON text, which stay in the prompt when the rest of a result is cleared.


_MISSING: Final = object()


def fields_in(text: str, paths: Iterable[str]) -> dict[str, Any]:
    """The values at these paths in a JSON text, by path; paths without a value are left out. Empty if it is not JSON.

    `order.id` is a field of a field, `items.0` the first item of a list; a key that itself contains dots is found, too.
    """
    keys = tuple(paths)
    if not keys:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # a lone surrogate, which is not UTF-8, is a ValueError
        return {}
    values = ((path, _at(value, path)) for path in keys)
    return {path: there for path, there in values if there is not _MISSING}


def _at(value: object, path: str) -> object:
    there = _step(value, path)
    if there is _MISSING:
        there = value
        for key in path.split("."):
            there = _step(there, key)
    return there


def _step(value: object, key: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(key, _MISSING)
    if isinstance(value, list) and key.isdecimal():
        items = cast("list[object]", value)
        return items[int(key)] if int(key) < len(items) else _MISSING
    return _MISSING


# The kinds of blocks.


PROVIDER_TAG: Final = "provider."
"""The prefix of the tags of blocks that contain, verbatim, content that only a provider reads."""

Author: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""The author of a block."""


class BaseBlock(
    Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, weakref=False
):
    """Fields every block has. Never instantiated; annotate with `Block`."""

    author: ClassVar[str] = "system"

    id: BlockId
    turn: TurnId
    source: str = ""
    """The foreign id of the message or item that the block came from; empty: none. Blocks of one source are appended
    together, and only once."""


class TurnHeader(BaseBlock, frozen=True, kw_only=True, tag="turn.header"):
    """Opens a turn. The model does not see it."""

    started_at: float = 0.0
    """Seconds since the epoch."""


class UserPrompt(BaseBlock, frozen=True, kw_only=True, tag="user.prompt"):
    """The user's prompt; it opens a turn if no header did."""

    author: ClassVar[str] = "user"
    text: str
    parts: tuple[Part, ...] = ()


class UserFollowup(BaseBlock, frozen=True, kw_only=True, tag="user.followup"):
    """User text queued while a turn ran and delivered at its end."""

    author: ClassVar[str] = "user"
    text: str
    parts: tuple[Part, ...] = ()


class UserSteer(BaseBlock, frozen=True, kw_only=True, tag="user.steer"):
    """User text that arrived inside a running turn."""

    author: ClassVar[str] = "user"
    text: str
    parts: tuple[Part, ...] = ()


class UserAttachment(BaseBlock, frozen=True, kw_only=True, tag="user.attachment"):
    """A file or a piece of environment that came with the user's words."""

    author: ClassVar[str] = "user"
    name: str
    part: Part
    mime: str = "text/plain"
    standing: str = ""
    """For a standing instruction: what it replaces and is replaced by (see `standing_key`). Empty: it
    is none, and is folded like the rest of the conversation."""


class AssistantBlock(BaseBlock, frozen=True, kw_only=True):
    """Fields of everything that the model wrote. Never instantiated."""

    author: ClassVar[str] = "assistant"
    response: str = ""
    """Id of the model response that contained it; blocks of one response form one round."""


class AssistantThinking(AssistantBlock, frozen=True, kw_only=True, tag="assistant.thinking"):
    """The provider's thinking block, opaque and verbatim."""

    provider: dict[str, Any]
    """The whole block as the provider sent it, signature included."""


class AssistantCompletion(AssistantBlock, frozen=True, kw_only=True, tag="assistant.completion"):
    """Text that the model wrote."""

    text: str
    provider: dict[str, Any] = {}
    """Data of the provider that must be sent back (an id, a phase); opaque."""


class ToolCall(AssistantBlock, frozen=True, kw_only=True, tag="react.tool.call"):
    """The model calls a tool."""

    call_id: CallId
    name: str
    input: dict[str, Any]
    provider: dict[str, Any] = {}
    """Data of the provider that must be sent back (an id, the arguments as they were written); opaque."""


class ToolResult(BaseBlock, frozen=True, kw_only=True, tag="react.tool.result"):
    """What the tool returned."""

    author: ClassVar[str] = "tool"
    call_id: CallId
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    envelope: Envelope = Envelope()
    artifact: ArtifactId = ArtifactId("")
    """For a confidential result: the artifact with its content, which the log does not have; in the log, `parts` say
    so."""


class Note(AssistantBlock, frozen=True, kw_only=True, tag="react.note"):
    """A note, which stays byte-exact through any number of compactions."""

    text: str


class Plan(AssistantBlock, frozen=True, kw_only=True, tag="react.plan"):
    """The current plan; the latest survives compaction."""

    text: str


class SystemMessage(BaseBlock, frozen=True, kw_only=True, tag="system.message"):
    """A notice of the engine, shown as text; or a message of the operator, sent again under its role."""

    text: str
    role: str = ""
    """The role under which the operator's message came, `system` or `developer`; empty: a notice of the engine."""
    standing: str = ""
    """As `UserAttachment.standing`."""


class RangeSummary(BaseBlock, frozen=True, kw_only=True, tag="conv.range.summary"):
    """The block that replaces the blocks folded by a compaction."""

    covered_turn_ids: tuple[TurnId, ...] = ()
    """Turns folded since the previous summary, oldest first."""
    split_turn_id: TurnId | None = None
    """The turn that the cut went through, if any."""
    start: int = 0
    """Version of the first block of the range."""
    cut: int = 0
    """Version of the first block after the range."""
    summary: StructuredSummary
    digest: Digest
    degraded: bool = False
    """Written without a model because the model failed; may be replaced later."""
    turn_range: tuple[TurnId, ...] = ()
    """Oldest and newest turn that this summary and all before it cover completely; empty: none."""
    begun_turn_id: TurnId | None = None
    """The turn that continues after the cut, if its beginning is covered."""


class OpaqueBlock:
    """A block of a kind that this version does not know, kept exactly as it was read.

    An application's own kinds are such blocks, too. They need a tag and fields, among them `id` and `turn`; with
    `author` and `text` they are counted, cut and shown like all others.

    Not a struct or an attrs class, because msgspec would encode the fields as a nested object.
    """

    __slots__ = ("fields", "tag")

    def __init__(self, tag: str, fields: dict[str, Any]) -> None:
        self.tag = tag
        self.fields = fields
        """All fields except the tag; must not be changed."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueBlock):
            return NotImplemented
        return (self.tag, self.fields) == (other.tag, other.fields)

    def __hash__(self) -> int:
        return hash((self.tag, self.id))

    def __repr__(self) -> str:
        return f"OpaqueBlock({self.tag!r}, {self.fields!r})"

    def _field(self, name: str) -> str:
        """A field as text; null is none, as in the columns of a store."""
        value = self.fields.get(name)
        return "" if value is None else str(value)

    @property
    def id(self) -> BlockId:
        """The block's id."""
        return BlockId(self._field("id"))

    @property
    def turn(self) -> TurnId:
        """The turn to which it belongs."""
        return TurnId(self._field("turn"))

    @property
    def author(self) -> str:
        """The field `author`; empty if there is none."""
        return self._field("author")

    @property
    def source(self) -> str:
        """The foreign id that it came from, or empty; in an application's own kinds, a field of this name belongs to
        the application."""
        source = self.fields.get("source", "") if self.tag.startswith(PROVIDER_TAG) else ""
        return source if isinstance(source, str) else ""

    @property
    def text(self) -> str:
        """The text for the model; empty if there is none."""
        text = self.fields.get("text", "")
        return text if isinstance(text, str) else ""


KnownBlock: TypeAlias = (
    TurnHeader
    | UserPrompt
    | UserFollowup
    | UserSteer
    | UserAttachment
    | AssistantThinking
    | AssistantCompletion
    | ToolCall
    | ToolResult
    | Note
    | Plan
    | SystemMessage
    | RangeSummary
)

if TYPE_CHECKING:
    Block: TypeAlias = KnownBlock | OpaqueBlock
    """A block of any kind."""
else:
    # msgspec builds its decoder from this union; `_codec` decodes all other kinds itself.
    Block = KnownBlock


def tag_of(block: Block) -> str:
    """The wire name of a block's kind."""
    if isinstance(block, OpaqueBlock):
        return block.tag
    return str(block.__struct_config__.tag)


_THOUGHTS: Final = ("thinking", "reasoning_content", "reasoning", "content", "summary")
"""Fields in which Anthropic, OpenAI and servers of open models return thinking."""


def text_of(block: Block) -> str:
    """The text of a block, for reading, searching and quoting; never JSON-escaped."""
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            return "\n".join([block.text, *([text_of_parts(block.parts)] if block.parts else [])])
        case UserAttachment():
            return text_of_parts((block.part,))
        case ToolResult():
            return text_of_parts(block.parts)
        case ToolCall():
            return f"{block.name}\n{leaves(block.input)}"
        case AssistantThinking():
            thoughts = map(block.provider.get, _THOUGHTS)
            return next((text for value in thoughts if (text := _thought(value))), "")
        case TurnHeader() | RangeSummary():
            return ""
        case _:
            return block.text


def words_of(block: Block) -> str:
    """The user's words in a block, without attachments; empty for other blocks."""
    if not isinstance(block, UserPrompt | UserFollowup | UserSteer):
        return ""
    texts = (part.text for part in block.parts if isinstance(part, TextPart))
    return "\n".join(filter(None, (block.text, *texts)))


def _thought(value: object) -> str:
    """The value if it is a text; the texts of a list of parts; else empty."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    parts = [cast("dict[str, Any]", p) for p in cast("list[Any]", value) if isinstance(p, dict)]
    texts = (part.get("text") for part in parts)
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def standing_key(kind: str, name: str, source: str = "", text: str = "") -> str:
    """The key of a standing instruction; with a `text`, one that only an equal text has."""
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()[:12] if text else ""
    return ":".join(filter(None, (kind, name, source, digest)))


def standing_of(block: Block) -> str:
    """What a standing instruction replaces and is replaced by; empty: the block is none."""
    return block.standing if isinstance(block, UserAttachment | SystemMessage) else ""


def images_of(block: Block) -> tuple[ImagePart | DocumentPart | ProviderPart, ...]:
    """The parts of a block that are not text."""
    match block:
        case UserPrompt() | UserFollowup() | UserSteer() | ToolResult():
            parts = block.parts
        case UserAttachment():
            parts = (block.part,)
        case _:
            return ()
    return tuple([part for part in parts if not isinstance(part, TextPart)])
