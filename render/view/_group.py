"""Entries and groups: a block with its place in the log, and the blocks that are shown together.

A *group* is one round (all blocks of one model response, and the results of its calls) with whatever
followed until the next response: user texts, notices. The blocks before the first response are a group
without a round. Groups are the unit of work: a group that no event changed is the same object as in the
last render, with all values computed for it (messages, tokens). So a render costs what is new, not what is
visible.

A response is placed after the request that it answers. A block that was appended after that request was
rendered was not part of it, so it is shown after the response, in the round that the response begins. A
result of a call that the request had shown as interrupted is late, and is marked as such.

    log      prompt  [request]  steer  answer  result
    shown    prompt             answer  result  steer
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Sized
from enum import Enum
from functools import cached_property
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any, TypeVar

import attrs
from msgspec import Struct, structs

from blocks import (
    Answered,
    ArtifactId,
    Block,
    CallId,
    DroppedSpan,
    FoldState,
    HideReason,
    ToolCall,
    UserAttachment,
    label_of,
    tag_of,
)
from render.view._provider_blocks import verbatim

_I = TypeVar("_I")
_T = TypeVar("_T")

NO_ARTIFACT = ArtifactId("")


def number(items: Sized) -> str:
    """The number of items, for a repr, because contents may be long or secret."""
    return f"<{len(items)}>"


class Place(Enum):
    """The place of an entry in its group."""

    SILENT = "silent"
    """Not shown: a turn header."""
    RESPONSE = "response"
    """A block by the model."""
    RESULT = "result"
    """A result of a call of the same group."""
    USER = "user"
    """Shown in the user's message, after the results."""
    LATE = "late"
    """A result whose call had been reported as interrupted before it came; shown as text."""
    CARRIED = "carried"
    """A carried block, shown after the summary."""
    ORPHAN = "orphan"
    """A result without a call; not shown."""


@attrs.frozen(kw_only=True)
class Asked:
    """The request that a response answers."""

    sent: str
    """Hash of the request; empty: not recorded."""
    begun: int
    """Version of the first block of the response."""


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """A block with its position in the log, and how it is shown; a struct, because folds make many and copy them."""

    version: int
    at: float
    block: Block
    """The part of the block that may be shown, quoted or searched: the block itself or, if it is hidden on request, its
    replacement."""
    path: str
    place: Place
    round: int = 0
    """Number of the round, from 1; 0 before the first response."""
    pair: str = ""
    """For a call and its result: the id that joins them, unique in the view."""
    replacement: str | None = None
    """The text that is shown instead, if it is hidden; empty: nothing."""
    hidden_as: HideReason | None = None
    """Why it is hidden, if an event says so."""
    artifact: ArtifactId = NO_ARTIFACT
    """The artifact to which its content was moved, if it is hidden for that reason."""
    dropped: DroppedSpan | None = None
    """In the first block of a dropped span: the content of `replacement`, as data."""
    unbound: bool = False
    """For thinking: whether the content before it was rewritten since it was generated."""
    asked: Asked | None = None
    """For a block by the model: the request that it answers."""
    original: Block | None = None
    """The block as it was appended, if it is hidden on request; for `restore` and `read` only."""
    opened: Block | None = None
    """For a confidential result: the block with its content, for the model only; `block` is its replacement."""
    ends: tuple[int, int] = (0, 0)
    """Characters of that content that are shown before and after `replacement`."""
    state: FoldState
    """The state of the fold just before this entry."""

    def __repr__(self) -> str:
        return f"<Entry v{self.version}: {tag_of(self.block)}>"

    @property
    def name(self) -> str:
        """The path; of a file that is hidden on request the label, because its path has the file's name."""
        is_file = isinstance(self.original, UserAttachment)
        return label_of(self.version) if is_file else self.path

    @property
    def source(self) -> Block:
        """The block as it was appended, hidden or not. No content of a request may be taken from here."""
        return self.block if self.original is None else self.original


@attrs.frozen(kw_only=True, eq=False)
class Group:
    """Entries that are shown together, in log order."""

    entries: tuple[Entry, ...] = attrs.field(repr=number)
    round: int = 0
    response: str = ""
    sealed: int = 0
    """Version of the view in the first request that showed this group; 0: none yet.

    A call that this request showed as interrupted remains so, and later entries are shown after what it
    showed, so that the next request extends it.
    """
    asked: Asked | None = None
    """The request that the newest response of the group answers."""
    stale: bool = False
    """Whether the content before the response is not what that request showed."""
    known: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)
    """Values computed for it so far; see `memo`."""

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """The value that `make` returned at the first call with this key."""
        try:
            found: _T = self.known[key]
        except KeyError:
            found = self.known[key] = make()
        return found

    @cached_property
    def first(self) -> int:
        """Version of the oldest entry."""
        return self.entries[0].version

    @cached_property
    def last(self) -> int:
        """Version of the newest entry."""
        return self.entries[-1].version

    @cached_property
    def is_hidden(self) -> bool:
        """Whether anything in it is shown as something else."""
        return any(e.replacement is not None or e.opened is not None for e in self.entries)

    def placed(self, place: Place) -> Sequence[Entry]:
        """The entries with this place, in log order."""
        return self._by_place.get(place, ())

    @cached_property
    def _by_place(self) -> Mapping[Place, Sequence[Entry]]:
        found: dict[Place, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.place, []).append(entry)
        return found

    def place_of(self, version: int) -> int:
        """The index in `entries` of the entry with this version."""
        return bisect_left(self.entries, version, key=attrgetter("version"))

    def meanwhile(self, request: Answered) -> int:
        """Index of the first entry that was appended while a request was in flight.

        If the log does not say what was sent, no entry is moved: the number of entries.
        """
        entries = self.entries
        index = len(entries)
        while request.sent and index and entries[index - 1].version > request.shown:
            index -= 1
            if entries[index].place in (Place.RESPONSE, Place.RESULT):
                return len(entries)
        return index

    def find(self, key: str) -> Entry | None:
        """The oldest entry with this path or block id."""
        return self._by_name.get(key)

    @cached_property
    def _by_name(self) -> Mapping[str, Entry]:
        entries = list(reversed(self.entries))
        return {key: entry for entry in entries for key in (entry.block.id, entry.path)}

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Calls without a result, in order."""
        return tuple(call.call_id for _, call in self.unanswered)

    @property
    def unanswered(self) -> tuple[tuple[Entry, ToolCall], ...]:
        """The calls without a result, with their entries."""
        answered = {entry.pair for entry in self.placed(Place.RESULT)}
        return tuple(
            (entry, entry.block)
            for entry in self.placed(Place.RESPONSE)
            if isinstance(entry.block, ToolCall) and entry.pair not in answered
        )

    def sealed_at(self, shown: int) -> "Group":
        """The group after a request has shown it as it was at version `shown`.

        A later result, of a call that the request showed as interrupted, becomes late.
        """
        if self.last <= shown:
            same = attrs.evolve(self, sealed=shown)
            same.known.update(self.known)  # it is shown as before
            return same
        asked = {e.pair for e in self.placed(Place.RESPONSE) if e.pair and e.version <= shown}
        entries = (
            structs.replace(entry, place=Place.LATE, pair="")
            if entry.place is Place.RESULT and entry.version > shown and entry.pair in asked
            else entry
            for entry in self.entries
        )
        return attrs.evolve(self, entries=tuple(entries), sealed=shown)


@attrs.frozen(eq=False)
class GroupMemo:
    """Values computed for each group of a view, kept for the next view of the same timeline.

    A conversation grows at its end, so nearly all groups of a view were in the one before. Finding the first
    different group costs at most one pointer comparison per group; values are computed only from there on.
    """

    _kept: dict[Any, tuple[Sequence[Group], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Sequence[Group], tuple[Any, ...]]], init=False, repr=False
    )
    """By key: the groups of the last query, and the value for each."""
    _chains: dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]] = attrs.field(
        factory=dict[Any, tuple[Any, Sequence[Any], tuple[Any, ...]]], init=False, repr=False
    )
    """As `_kept`, for values that depend on the preceding groups."""

    def each(
        self, key: object, groups: Sequence[Group], find: Callable[[Group], _T]
    ) -> tuple[_T, ...]:
        """The value of `find` for each group."""
        old: Sequence[Group]
        found: tuple[_T, ...]
        old, found = self._kept.get(key, ((), ()))
        if old != groups:
            same = _same(old, groups)
            found = (*found[:same], *map(find, groups[same:]))
            self._kept[key] = groups, found
        return found

    def chained(
        self, key: object, items: Sequence[_I], start: _T, link: Callable[[_T, _I], _T]
    ) -> tuple[_T, ...]:
        """The value of `link` for each item, given its value for the previous item."""
        old: Sequence[_I]
        found: tuple[_T, ...]
        begun, old, found = self._chains.get(key, (start, (), ()))
        if begun != start:
            old, found = (), ()
        if old != items:
            same = _same(old, items)
            made = list(found[:same])
            for item in items[same:]:
                made.append(link(made[-1] if made else start, item))
            found = tuple(made)
            self._chains[key] = start, items, found
        return found


def _same(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items at the beginning are the same: mostly all but the last of the old ones, as one comparison shows."""
    shared = min(len(old), len(new))
    if shared and old[: shared - 1] == new[: shared - 1]:
        return shared - (old[shared - 1] is not new[shared - 1])
    return next(compress(count(), map(is_not, old, new)), shared)


def was_paused(entries: Sequence[Entry]) -> bool:
    """Whether the provider paused in the middle of its own work, and nothing was appended since."""
    return bool(entries) and verbatim(entries[-1].block) is not None
