"""Entries and groups: a block with its place in the log, and the blocks that are shown together.

A *group* is one round (all that one model response holds, the results of its calls) and whatever
followed until the next response: user text, notices.  What precedes the first response is a group
without a round.  Groups are the unit of work: a group that no event touched is the same object as
in the last render, and whatever was computed for it (its messages, its tokens) is still there.  So
a render costs what is new, not what is visible.
"""

from bisect import bisect_left
from collections.abc import Callable, Sized
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from blocks import ArtifactId, Block, CallId, DroppedSpan, FoldState, HideReason, ToolCall, tag_of

_T = TypeVar("_T")

NO_ARTIFACT = ArtifactId("")


def number(items: Sized) -> str:
    """How many there are: what a repr says of content, which may be long, and secret."""
    return f"<{len(items)}>"


class Place(Enum):
    """Where an entry goes in its group."""

    SILENT = "silent"
    """Shown as nothing: a turn header."""
    RESPONSE = "response"
    """Said by the model."""
    RESULT = "result"
    """Answers a call of the same group."""
    USER = "user"
    """Shown in the user's message, after the results."""
    LATE = "late"
    """A result whose call had been reported as interrupted before it came; shown as text."""
    CARRIED = "carried"
    """Outlived the cut that folded its surroundings; shown after the summary."""
    ORPHAN = "orphan"
    """A result without a call; not shown."""


@attrs.frozen(kw_only=True)
class Asked:
    """What a response answers."""

    sent: str
    """Hash of the request; empty: nobody noted it."""
    begun: int
    """Version of the first block of the response."""


@attrs.frozen(kw_only=True, eq=False)
class Entry:
    """A block, where it stands in the log, and how it is shown."""

    version: int
    at: float
    block: Block = attrs.field(repr=tag_of)
    """All that may be shown of the block, quoted or searched: the block itself or, where somebody
    asked for it to be hidden, what stands for it."""
    path: str = attrs.field(repr=False)
    place: Place
    round: int = 0
    """Number of the round, from 1; 0 before the first response."""
    pair: str = ""
    """Of a call and its result: what ties the two together, unique in the view."""
    replacement: str | None = attrs.field(default=None, repr=False)
    """What is shown instead, if hidden; empty: nothing."""
    hidden_as: HideReason | None = None
    """Why it is hidden, where an event says so."""
    artifact: ArtifactId = NO_ARTIFACT
    """Where its content was moved to, if that is why it is hidden."""
    dropped: DroppedSpan | None = attrs.field(default=None, repr=False)
    """Of the first block of a dropped span: what `replacement` says, as data."""
    unbound: bool = False
    """Of thinking: what precedes it was rewritten after it had been thought."""
    asked: Asked | None = None
    """Of what the model said: the request that it was said to."""
    original: Block | None = attrs.field(default=None, repr=False)
    """The block as it was appended, if it is hidden on request; for `restore` and `read` only."""
    state: FoldState = attrs.field(repr=False)
    """The fold's numbers just before this entry."""

    @property
    def source(self) -> Block:
        """The block as it was appended, hidden or not. Nothing that is sent may come from here."""
        return self.block if self.original is None else self.original


@attrs.frozen(kw_only=True, eq=False)
class Group:
    """Entries that are shown together, in log order."""

    entries: tuple[Entry, ...] = attrs.field(repr=number)
    round: int = 0
    response: str = ""
    sealed: int = 0
    """Version of the view in the first request that showed this group; 0: none yet.

    What that request answered on behalf of a tool stays answered, and what comes later joins
    behind what it showed, so that the next request extends it.
    """
    asked: Asked | None = None
    """The request that the newest response of the group answers."""
    stale: bool = False
    """Whether that request had shown something else than what now precedes the response."""
    _memo: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """What `make` returned the first time it was asked for with this key."""
        try:
            found: _T = self._memo[key]
        except KeyError:
            found = self._memo[key] = make()
        return found

    @property
    def first(self) -> int:
        """Version of the oldest entry."""
        return self.entries[0].version

    @property
    def last(self) -> int:
        """Version of the newest entry."""
        return self.entries[-1].version

    def placed(self, place: Place) -> tuple[Entry, ...]:
        """The entries with this place, in log order."""
        return self.memo(place, lambda: tuple(e for e in self.entries if e.place is place))

    def place_of(self, version: int) -> int:
        """Where in `entries` the one of this version stands."""
        return bisect_left(self.entries, version, key=attrgetter("version"))

    def find(self, key: str) -> Entry | None:
        """The oldest entry with this path or block id."""
        return self.memo("places", self._places).get(key)

    def _places(self) -> dict[str, Entry]:
        entries = list(reversed(self.entries))
        return {key: entry for entry in entries for key in (entry.block.id, entry.path)}

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Calls without a result, in order."""
        return tuple(call.call_id for _, call in self.unanswered)

    @property
    def unanswered(self) -> tuple[tuple[Entry, ToolCall], ...]:
        """The same with their entries."""
        answered = {entry.pair for entry in self.placed(Place.RESULT)}
        return tuple(
            (entry, entry.block)
            for entry in self.placed(Place.RESPONSE)
            if isinstance(entry.block, ToolCall) and entry.pair not in answered
        )

    @property
    def is_hidden(self) -> bool:
        """Whether anything in it is shown as something else."""
        return self.memo("hidden", lambda: any(e.replacement is not None for e in self.entries))
