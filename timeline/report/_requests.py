"""Requests as a report keeps them: every distinct piece once, and of each request what differs from the one before.

A piece is a field of the request, an item of one of its lists or, of an item that holds a list itself (a message
and its content), its head and each of its parts.  Cache marks are kept apart: the tail's moves with every call.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from render import Json
from timeline.report._page import json_bytes

MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
"""What providers call a cache mark."""
_INNER: Final = ("content", "parts")
"""Where an item holds a list of its own."""

Placed: TypeAlias = tuple[int, str]
"""The number of a piece, and the mark on it as JSON; empty: none."""


@attrs.define
class Requests:
    """All requests of one timeline; the lists run in parallel, one element a piece or a request."""

    slots: list[str] = attrs.field(factory=list[str])
    """Where a piece stands: `messages` is an item of that list, `messages/content` the head of one whose parts
    follow, the empty text such a part, `=store` a field that is no list."""
    texts: list[str] = attrs.field(factory=list[str])
    """A piece as JSON."""
    versions: list[int] = attrs.field(factory=list[int])
    """Of the block that it shows; 0: of none, or not known."""
    kept: list[int] = attrs.field(factory=list[int])
    """How many pieces a request has in common with the beginning of the one before."""
    added: list[list[int]] = attrs.field(factory=list[list[int]])
    """The pieces behind those."""
    marks: list[list[tuple[int, str]]] = attrs.field(factory=list[list[tuple[int, str]]])
    """Places of cache marks among the pieces of a request, and the marks."""
    _last: list[int] = attrs.field(factory=list[int], init=False)
    _known: dict[tuple[str, str], int] = attrs.field(factory=dict[tuple[str, str], int], init=False)
    _shown: dict[int, tuple[object, int]] = attrs.field(
        factory=dict[int, tuple[object, int]], init=False
    )
    """Versions of the blocks that contents show, by the contents' identity."""
    _seen: dict[int, tuple[object, list[Placed]]] = attrs.field(
        factory=dict[int, tuple[object, list[Placed]]], init=False
    )
    """By identity: an unmarked message of the renderer's is the same object in every request."""

    def shows(self, content: object, version: int) -> None:
        """A content of the requests to come shows the block of this version."""
        self._shown[id(content)] = content, version

    def add(self, request: Mapping[str, Any], points: Sequence[int]) -> None:
        """The next request; `points`: versions of the blocks that carry a cache mark, in order."""
        placed = [each for field, value in request.items() for each in self._field(field, value)]
        pieces = [piece for piece, _ in placed]
        same = _common(pieces, self._last)
        self.kept.append(same)
        self.added.append(pieces[same:])
        self.marks.append([(place, mark) for place, (_, mark) in enumerate(placed) if mark])
        marked = [piece for piece, mark in placed if mark][-len(points) :] if points else []
        for piece, version in zip(reversed(marked), reversed(points), strict=False):
            self.versions[piece] = self.versions[piece] or version
        self._last = pieces

    def _field(self, name: str, value: object) -> Iterator[Placed]:
        if not isinstance(value, list):
            yield self._piece(f"={name}", value)
            return
        for item in cast("list[object]", value):
            seen = self._seen.get(id(item))
            if seen is None or seen[0] is not item:
                seen = self._seen[id(item)] = item, list(self._item(name, item))
            yield from seen[1]

    def _item(self, name: str, item: object) -> Iterator[Placed]:
        fields = cast("Json", item if isinstance(item, dict) else {})
        inner = next((key for key in _INNER if isinstance(fields.get(key), list)), None)
        if inner is None:
            yield self._piece(name, cast("object", item))
            return
        yield self._piece(f"{name}/{inner}", {k: v for k, v in fields.items() if k != inner})
        for part in cast("list[object]", fields[inner]):
            yield self._piece("", part)

    def _piece(self, slot: str, value: object) -> Placed:
        shown = self._shown.get(id(value))
        version = shown[1] if shown and shown[0] is value else 0
        plain, mark = _unmarked(value)
        key = slot, _text(plain)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.texts)
            self.slots.append(slot)
            self.texts.append(key[1])
            self.versions.append(version)
        elif version and not self.versions[number]:
            self.versions[number] = version
        return number, mark


def _unmarked(value: object) -> tuple[object, str]:
    """The value without a cache mark, and the mark."""
    if not isinstance(value, dict):
        return value, ""
    fields = cast("Json", value)
    marks = {name: fields[name] for name in MARKS if name in fields}
    if not marks:
        return fields, ""
    return {name: each for name, each in fields.items() if name not in marks}, _text(marks)


def _common(pieces: Sequence[int], others: Sequence[int]) -> int:
    """How many the two begin with in common."""
    most = min(len(pieces), len(others))
    return next((at for at in range(most) if pieces[at] != others[at]), most)


def _text(value: object) -> str:
    return json_bytes(value).decode()
