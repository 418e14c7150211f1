"""The neutral form of a message, into which every format is read."""

from typing import Any, Literal, TypeAlias

import attrs

from blocks._content import Part
from blocks._events import UsageRecorded
from blocks.formats._json import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@attrs.frozen(kw_only=True)
class Thought:
    """The model's thinking, as its provider sent it."""

    value: Json
    source: str = ""
    """The foreign id of this piece, where pieces have ids; so in the classes below."""


@attrs.frozen(kw_only=True)
class Said:
    """Text of the model."""

    text: str
    provider: Json = attrs.field(factory=dict[str, Any])
    """What the provider attached and wants back; so in `Call`."""
    source: str = ""


@attrs.frozen(kw_only=True)
class Call:
    """The model asks for a tool."""

    call_id: str
    name: str
    input: Json
    provider: Json = attrs.field(factory=dict[str, Any])
    source: str = ""


@attrs.frozen(kw_only=True)
class Result:
    """What a tool returned."""

    call_id: str
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    source: str = ""


@attrs.frozen(kw_only=True)
class Verbatim:
    """Something of the model's or its provider's that is kept and passed on, and not read."""

    value: Json
    vendor: str = ""
    """Whose words they are; empty: Anthropic's."""
    source: str = ""


Content: TypeAlias = Part | Thought | Said | Call | Result | Verbatim


@attrs.frozen(kw_only=True)
class Message:
    """One message of a history; of formats that list items, one item."""

    role: Role
    id: str = ""
    """The foreign id of it; empty: it has none."""
    content: tuple[Content, ...] = ()
    """In order. Of a user: parts and results; of an assistant: everything but results."""
    instructions: str = ""
    """A part of the system prompt that is sent with every request anew: the newest counts."""


@attrs.frozen(kw_only=True)
class Response:
    """One response of a model."""

    message: Message
    id: str = ""
    """The provider's id of it; empty: it has none."""
    model: str = ""
    usage: UsageRecorded | None = None
    """What it cost; its `id` and `at` are placeholders. None: it does not say."""
    is_cut_off: bool = False
    """Whether the model had to stop in the middle: a call at the end may lack anything."""


def dialogue(role: Any) -> Role | None:
    """The role of a message in anybody's words; None: no message for a model."""
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
