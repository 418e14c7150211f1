"""Reading a request's JSON without trusting its shape."""

from typing import Any, cast

from render import Json


def child(value: Json, name: str) -> Json:
    """The object under a name; an empty one when there is none."""
    found = value.get(name)
    return cast("Json", found) if isinstance(found, dict) else {}


def blocks_of(content: Any) -> list[Json]:
    """Content as a list; a bare text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[Json]", content) if isinstance(content, list) else []
