"""Pieces and cache points, put together as one request."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter, eq, itemgetter
from typing import Final

from render.policy._provider import Piece
from render.view._provider_blocks import Json

MIDWAY: Final = "[the session starts mid-way]"


def assemble(
    pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str] = ()
) -> list[Json]:
    """The `messages` of a request: adjacent messages of one role joined, marks set.

    Messages without a mark are the pieces' own objects: read them, do not change them.
    """
    marked: dict[int, set[int]] = {}
    for index, spot in marks:
        marked.setdefault(index, set()).add(spot)
    parts: list[tuple[Json, ...]] = list(map(attrgetter("items"), pieces))
    for index, spots in marked.items():
        parts[index] = _marked(pieces[index], frozenset(spots))
    messages = _joined(list(chain.from_iterable(parts)))
    if not messages or not _may_open(messages[0]):
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": MIDWAY}]})
    return appended(messages, texts)


def appended(messages: list[Json], texts: Sequence[str]) -> list[Json]:
    """The messages with texts behind everything, and so behind the last mark: never cached."""
    if not texts:
        return messages
    contents = [{"type": "text", "text": text} for text in texts]
    if not messages or messages[-1]["role"] != "user":
        return [*messages, {"role": "user", "content": contents}]
    *before, last = messages
    return [*before, {"role": "user", "content": [*last["content"], *contents]}]


def _may_open(message: Json) -> bool:
    """The user speaks first, unless the provider has summarised all that came before."""
    opening: str = message["content"][0].get("type", "")
    return message["role"] == "user" or opening == "compaction"


def _joined(messages: list[Json]) -> list[Json]:
    """Adjacent messages of one role as one; they are rare, and the others stay what they are."""
    roles: list[str] = list(map(itemgetter("role"), messages))
    if not any(map(eq, roles, roles[1:])):
        return messages
    runs = (list(run) for _, run in groupby(messages, itemgetter("role")))
    return [run[0] if len(run) == 1 else _as_one(run) for run in runs]


def _as_one(run: Sequence[Json]) -> Json:
    contents = chain.from_iterable(map(itemgetter("content"), run))
    return {"role": run[0]["role"], "content": list(contents)}


def _marked(piece: Piece, spots: frozenset[int]) -> tuple[Json, ...]:
    """The piece's messages with marks; the same objects for the same marks."""
    known: tuple[Json, ...] | None = piece.marked.get(spots)
    if known is None:
        known = piece.marked[spots] = tuple(_mark(piece.items, spots))
    return known


def _mark(messages: Iterable[Json], spots: frozenset[int]) -> Iterator[Json]:
    """Those that get no mark are the same objects."""
    spot = 0
    for message in messages:
        content: list[Json] = message["content"]
        places = range(spot, spot + len(content))
        spot += len(content)
        if spots.isdisjoint(places):
            yield message
        else:
            marked = [
                with_mark(part) if place in spots else part
                for place, part in zip(places, content, strict=True)
            ]
            yield {**message, "content": marked}


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
