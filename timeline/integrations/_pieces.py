"""The content of a rendered request, piece by piece, in a form that is the same for all providers.

Frameworks have messages of their own. Each adapter makes them from these pieces, for models whose requests it cannot
replace, and for programs that call the model themselves.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from msgspec.structs import replace

from blocks.formats import (
    Call,
    Content,
    ModelText,
    Result,
    Thought,
    checked_format,
    items,
    messages_in,
    obj,
    objs,
    parts_of,
)
from render import Json, Rendered

SEAL: Final = "thoughtSignature"
"""Gemini's name for the signature of a part."""
_STANDARD: Final = str.maketrans("-_", "+/")
"""From the alphabet of base64 for URLs to the standard one."""
_MARKS: Final = ("cache_control", "prompt_cache_breakpoint")


@attrs.frozen
class ContentPiece:
    """One content block."""

    role: str
    """Who says it: `system`, `user`, `assistant` or `tool`."""
    content: Content
    raw: Json
    """The block, or the whole item, as the provider takes it."""

    @property
    def mark(self) -> Json:
        """The cache mark behind it; empty: none."""
        last = [self.raw, *objs(self.raw.get("output"))[-1:], *objs(self.raw.get("content"))[-1:]]
        return {name: block[name] for block in last for name in _MARKS if name in block}


def pieces_of(rendered: Rendered) -> Iterator[ContentPiece]:
    """The pieces of a request in their order, the system prompt first; a call comes before its result."""
    for raw in rendered.system:
        content = raw.get("content", raw)
        blocks: list[Any] = items(content) or [content]
        for block in blocks:
            for part in parts_of(block):
                yield ContentPiece("system", part, obj(block))
    name = checked_format(rendered.provider.name, "pieces_of()")
    for item in rendered.messages:
        for raw, alone in _blocks(item):
            for message in messages_in(alone, name):
                for content in map(_standard, message.content):
                    role = "tool" if isinstance(content, Result) else message.role
                    yield ContentPiece(role, content, raw)


def _standard(content: Content) -> Content:
    """The content with its signature in the standard alphabet of base64, the only one that frameworks decode. Google's
    client writes it in the one for URLs, so that a signature which is a word, for a call of another model, stays it.
    """
    match content:
        case (
            ModelText(provider={"thoughtSignature": str(seal)})
            | Call(provider={"thoughtSignature": str(seal)})
        ):
            return replace(content, provider={**content.provider, SEAL: seal.translate(_STANDARD)})
        case Thought(value={"thoughtSignature": str(seal)}):
            return replace(content, value={**content.value, SEAL: seal.translate(_STANDARD)})
        case _:
            return content


def _blocks(item: Json) -> Iterator[tuple[Json, Json]]:
    """Each content block of an item, with an item that has this block alone; or the item itself if its content belongs
    together."""
    name = next((name for name in ("content", "parts") if items(item.get(name))), "")
    if not name or "tool_calls" in item or item.get("role") == "tool":
        yield item, item
        return
    for block in items(item[name]):
        yield obj(block), {**item, name: [block]}


def names_of(pieces: Sequence[ContentPiece]) -> dict[str, str]:
    """The names of the tools that were called, by the ids of the calls."""
    calls = (piece.content for piece in pieces if isinstance(piece.content, Call))
    return {call.call_id: call.name for call in calls}
