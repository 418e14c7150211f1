"""Pieces, put together as the conversation of one request, in the way that providers share."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter, eq, itemgetter
from typing import Final

from render.policy._provider import Piece
from render.view._provider_blocks import Json

_ITEMS: Final = attrgetter("items")
_ROLE: Final = itemgetter("role")


def assembled(
    pieces: Sequence[Piece],
    marks: Iterable[tuple[int, int]],
    mark: Callable[[Piece, frozenset[int]], Iterable[Json]],
) -> list[Json]:
    """The items of all pieces; of a piece that gets marks, what `mark` makes of it: the same objects for the
    same marks."""
    by_piece: dict[int, set[int]] = {}
    for index, spot in marks:
        by_piece.setdefault(index, set()).add(spot)
    parts: list[tuple[Json, ...]] = list(map(_ITEMS, pieces))
    for index, spots in by_piece.items():
        marked, at = pieces[index].marked, frozenset(spots)
        if at not in marked:
            marked[at] = tuple(mark(pieces[index], at))
        parts[index] = marked[at]
    return list(chain.from_iterable(parts))


def joined(messages: list[Json], as_one: Callable[[Sequence[Json]], Json]) -> list[Json]:
    """Adjacent messages of one role as one; they are rare, and the others stay what they are."""
    roles = list(map(_ROLE, messages))
    if not any(map(eq, roles, roles[1:])):
        return messages
    runs = (list(run) for _, run in groupby(messages, _ROLE))
    return [run[0] if len(run) == 1 else as_one(run) for run in runs]


def behind(
    messages: list[Json], said: Json, as_one: Callable[[Sequence[Json]], Json]
) -> list[Json]:
    """The messages with one of the user's behind everything, and so behind the last mark: never cached."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, said]
    return [*messages[:-1], as_one([messages[-1], said])]
