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
    """The foreign id of this piece, if pieces have ids; also in the classes below."""


@attrs.frozen(kw_only=True)
class Said:
    """Text of the model."""

    text: str
    provider: Json = attrs.field(factory=dict[str, Any])
    """Data of the provider that must be sent back; also in `Call`."""
    source: str = ""


@attrs.frozen(kw_only=True)
class Call:
    """A tool call of the model."""

    call_id: str
    name: str
    input: Json
    provider: Json = attrs.field(factory=dict[str, Any])
    source: str = ""


@attrs.frozen(kw_only=True)
class Result:
    """The result of a tool."""

    call_id: str
    parts: tuple[Part, ...] = ()
    is_error: bool = False
    source: str = ""


@attrs.frozen(kw_only=True)
class Verbatim:
    """Content of the model or its provider that is stored and sent back without being interpreted."""

    value: Json
    vendor: str = ""
    """Whose format it has; empty: Anthropic's."""
    source: str = ""


Content: TypeAlias = Part | Thought | Said | Call | Result | Verbatim


@attrs.frozen(kw_only=True)
class Message:
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


@attrs.frozen(kw_only=True)
class Response:
    """One response of a model."""

    message: Message
    id: str = ""
    """The provider's id of it; empty if it has none."""
    model: str = ""
    usage: UsageRecorded | None = None
    """Its tokens; the fields `id` and `at` are placeholders. None: not reported."""
    is_cut_off: bool = False
    """Whether it ended before the model had finished: a call at its end may be incomplete."""


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
