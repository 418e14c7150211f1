"""Blocks: immutable pieces of a conversation, such as a prompt, a completion, a tool call, its result or a note.

A block's tag is its name on disk and in SQL.  It is a plain string, so a class or a package can be renamed without
changing stored bytes.  A released tag never changes its meaning.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast

from msgspec import Struct

from blocks._content import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    leaves,
    text_of_parts,
)
from blocks._envelope import Envelope
from blocks._ids import ArtifactId, BlockId, CallId, TurnId
from blocks._summary import Digest, StructuredSummary

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
    """For a standing instruction: what it replaces and is replaced by (see `blocks.formats.standing_key`). Empty: it
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

    @property
    def id(self) -> BlockId:
        """The block's id."""
        return BlockId(str(self.fields.get("id", "")))

    @property
    def turn(self) -> TurnId:
        """The turn to which it belongs."""
        return TurnId(str(self.fields.get("turn", "")))

    @property
    def author(self) -> str:
        """The field `author`; empty if there is none."""
        return str(self.fields.get("author", ""))

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
            known = map(block.provider.get, _THOUGHTS)
            return next((text for value in known if (text := _thought(value))), "")
        case TurnHeader() | RangeSummary():
            return ""
        case _:
            return block.text


def _thought(value: object) -> str:
    """The value if it is a text; the texts of a list of parts; else empty."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    parts = [cast("dict[str, Any]", p) for p in cast("list[Any]", value) if isinstance(p, dict)]
    texts = (part.get("text") for part in parts)
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


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
