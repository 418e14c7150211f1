"""Pieces and cache points, put together as one request."""

from collections.abc import Iterable, Sequence
from typing import Final

from render._context import Json
from render.anthropic._encode import Piece

MIDWAY: Final = "[the session starts mid-way]"


def assemble(pieces: Sequence[Piece], marks: Iterable[tuple[int, int]]) -> list[Json]:
    """The `messages` of a request: adjacent messages of one role joined, marks set.

    Messages without a mark are the pieces' own objects: read them, do not change them.
    """
    marked: dict[int, set[int]] = {}
    for index, spot in marks:
        marked.setdefault(index, set()).add(spot)
    messages: list[Json] = []
    for index, piece in enumerate(pieces):
        spots = marked.get(index)
        for message in _marked(piece, spots) if spots else piece.messages:
            if messages and messages[-1]["role"] == message["role"]:
                joined = [*messages[-1]["content"], *message["content"]]
                messages[-1] = {"role": message["role"], "content": joined}
            else:
                messages.append(message)
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": MIDWAY}]})
    return messages


def _marked(piece: Piece, spots: set[int]) -> tuple[Json, ...]:
    contents = [*piece.assistant, *piece.user]
    for spot in spots:
        contents[spot] = with_mark(contents[spot])
    split = len(piece.assistant)
    parts = (("assistant", contents[:split]), ("user", contents[split:]))
    return tuple({"role": role, "content": part} for role, part in parts if part)


def with_mark(content: Json, ttl: str = "5m") -> Json:
    """The content block with a cache mark; 5 minutes is the provider's default and not spelled."""
    control = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    return {**content, "cache_control": control}


def marked_prefix(
    system: Sequence[Json], tools: Sequence[Json], ttl: str | None
) -> tuple[list[Json], list[Json]]:
    """System blocks and tools with one mark, at the end of system or, without one, of the tools.

    Without a `ttl` there is no mark: the provider would not cache so short a prefix.
    """
    system_blocks, tool_blocks = list(system), list(tools)
    marked = system_blocks or tool_blocks
    if marked and ttl:
        marked[-1] = with_mark(marked[-1], ttl)
    return system_blocks, tool_blocks
