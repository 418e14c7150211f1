"""Stores the requests of a report: each distinct piece once, and for each request its difference to the previous.

A piece is a field of the request or an item of one of its lists. An item that has a list itself (a message with
its content) is split into its head and its parts.  Cache marks are stored separately, since they move with each
call.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import clean_json
from blocks.formats import obj
from render import Json

MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
"""The providers' names for a cache mark."""
_INNER: Final = ("content", "parts")
"""The keys under which an item has a list of its own."""

Placed: TypeAlias = tuple[int, str]
"""The number of a piece, and its cache mark as JSON; empty if it has none."""


@attrs.define
class Requests:
    """All requests of one timeline; the lists have one element for each piece or each request."""

    slots: list[str] = attrs.field(factory=list[str])
    """The place of each piece: `messages` is an item of that list, `messages/content` the head of one whose parts
    follow, the empty text such a part, `=store` a field that is not a list."""
    texts: list[str] = attrs.field(factory=list[str])
    """Each piece as JSON."""
    versions: list[int] = attrs.field(factory=list[int])
    """The version of the block that each piece shows; 0 for none or unknown."""
    kept: list[int] = attrs.field(factory=list[int])
    """For each request, the number of leading pieces that it shares with the previous request."""
    added: list[list[int]] = attrs.field(factory=list[list[int]])
    """For each request, the pieces after those."""
    marks: list[list[tuple[int, str]]] = attrs.field(factory=list[list[tuple[int, str]]])
    """For each request, the indexes of the pieces with cache marks, and the marks."""
    _last: list[int] = attrs.field(factory=list[int], init=False)
    _index: dict[tuple[str, str], int] = attrs.field(factory=dict[tuple[str, str], int], init=False)
    _shown: dict[int, tuple[object, int]] = attrs.field(
        factory=dict[int, tuple[object, int]], init=False
    )
    """The version of the block that each content shows, by the content's identity."""
    _by_id: dict[int, tuple[object, list[Placed]]] = attrs.field(
        factory=dict[int, tuple[object, list[Placed]]], init=False
    )
    """Pieces by identity: the renderer uses the same object for an unmarked message in every request."""

    def shows(self, content: object, version: int) -> None:
        """Note that a content of later requests shows the block of this version."""
        self._shown[id(content)] = content, version

    def add(self, request: Mapping[str, Any], points: Sequence[int]) -> None:
        """Add the next request; `points`: the versions of the blocks with a cache mark, in order."""
        placed = [each for field, value in request.items() for each in self._field(field, value)]
        pieces = [piece for piece, _ in placed]
        most = min(len(pieces), len(self._last))
        same = next((at for at in range(most) if pieces[at] != self._last[at]), most)
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
            entry = self._by_id.get(id(item))
            if entry is None or entry[0] is not item:
                entry = self._by_id[id(item)] = item, list(self._item(name, item))
            yield from entry[1]

    def _item(self, name: str, item: object) -> Iterator[Placed]:
        fields = obj(item)
        inner = next((key for key in _INNER if isinstance(fields.get(key), list)), None)
        if inner is None:
            yield self._piece(name, item)
            return
        yield self._piece(f"{name}/{inner}", {k: v for k, v in fields.items() if k != inner})
        for part in cast("list[object]", fields[inner]):
            yield self._piece("", part)

    def _piece(self, slot: str, value: object) -> Placed:
        entry = self._shown.get(id(value))
        version = entry[1] if entry and entry[0] is value else 0
        plain, mark = _unmarked(value)
        key = slot, _text(plain)
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self.texts)
            self.slots.append(slot)
            self.texts.append(key[1])
            self.versions.append(version)
        elif version and not self.versions[number]:
            self.versions[number] = version
        return number, mark


def _unmarked(value: object) -> tuple[object, str]:
    """The value without its cache mark, and the mark as JSON."""
    if not isinstance(value, dict):
        return value, ""
    fields = cast("Json", value)
    marks = {name: fields[name] for name in MARKS if name in fields}
    plain = {name: each for name, each in fields.items() if name not in marks}
    return plain, _text(marks) if marks else ""


def _text(value: object) -> str:
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """A value as JSON; lone surrogates, which JSON cannot hold, become question marks."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.EncodeError):
        return msgspec.json.encode(clean_json(value))
