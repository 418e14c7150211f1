"""A request as one text: all that the model could read a name in."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from blocks import leaves
from render import Json, Rendered


@attrs.define
class Words:
    """Joins the texts of requests; remembers those of blocks that it has met before."""

    _known: dict[int, tuple[Json, str]] = attrs.field(
        init=False, factory=dict[int, tuple[Json, str]]
    )
    """By identity: an unmarked block of the renderer's is the same object in every request."""

    def of(self, rendered: Rendered) -> str:
        """System prompt and messages, one block a line or more; thinking and tools left out."""
        return "\n".join(self._texts(rendered))

    def _texts(self, rendered: Rendered) -> Iterator[str]:
        for block in rendered.system:
            yield self._text(block)
        for message in rendered.messages:
            for block in message["content"]:
                yield self._text(block)

    def _text(self, block: Json) -> str:
        known = self._known.get(id(block))
        if known is not None and known[0] is block:
            return known[1]
        text = _read(block)
        if "cache_control" not in block:
            self._known[id(block)] = (block, text)
        return text


def _read(block: Json) -> str:
    match block.get("type"):
        case "text":
            return _string(block.get("text"))
        case "tool_use":
            return f"{block.get('name')}\n{leaves(block.get('input'))}"
        case "tool_result":
            return _content(block.get("content"))
        case "compaction":
            return _string(block.get("content"))
        case "image":
            return "[image]"
        case _:
            return ""


def _content(content: str | Sequence[Json] | None) -> str:
    """What a tool returned."""
    if isinstance(content, str):
        return content
    return "\n".join(_read(part) for part in content or ())


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
