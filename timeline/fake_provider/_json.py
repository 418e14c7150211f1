"""Reading a request's JSON without trusting its shape."""

from typing import Any, Final, cast

from render import Json


def child(value: Json, name: str) -> Json:
    """The object in this field; an empty one if there is none."""
    found = value.get(name)
    return cast("Json", found) if isinstance(found, dict) else {}


_BILLING: Final = "x-anthropic-billing-header:"


def prompt_of(request: Json) -> list[Json]:
    """The system prompt of a request to the Messages API as the model sees it: without the first block if that is a
    billing header, which is not cached either."""
    system = blocks_of(request.get("system"))
    if system and str(system[0].get("text", "")).startswith(_BILLING):
        return system[1:]
    return system


def blocks_of(content: Any) -> list[Json]:
    """Content as a list of blocks; a plain text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[Json]", content) if isinstance(content, list) else []
