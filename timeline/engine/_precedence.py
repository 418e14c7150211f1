"""Who goes first, when several timelines of this process write one log.

Nobody has to ask.  But who has been too slow several times in a row, because a render takes longer
than the appends of the others, takes precedence, and the others hold back for a moment.  It is a
courtesy and no lock: nobody waits for long, so nothing gets stuck on somebody who is gone.
"""

import random
from collections.abc import Callable
from typing import Final
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary, ref

import attrs

from blocks import TimelineId
from persistence import EventStore
from timeline._flow import Flow, Pause

POLITE_CONFLICTS: Final = 2
"""Conflicts in a row after which one may take precedence."""
CONFLICTS_MAX: Final = 30
"""In a row, after which it is no accident: somebody appends whenever this is tried, say."""
PATIENCE: Final = 40
"""Pauses, two seconds in all, after which one does not hold back any longer."""
REST_SECONDS: Final = 0.001
"""About what a commit takes."""
REST_SECONDS_MAX: Final = 0.1


def rest_after(conflicts: int) -> float:
    """How long to wait after so many conflicts in a row: longer each time, and never in step."""
    longest = min(REST_SECONDS * 2 ** min(conflicts, 10), REST_SECONDS_MAX)
    return random.uniform(0, longest)  # noqa: S311 -- no secret


@attrs.define(eq=False)
class Precedence:
    """Of one log; the same object for all who write it."""

    holder: "ReferenceType[Contest] | None" = None


_known: WeakKeyDictionary[EventStore, WeakValueDictionary[TimelineId, Precedence]] = (
    WeakKeyDictionary()
)


def precedence_in(store: EventStore, timeline: TimelineId) -> Precedence:
    """The one of a log; when the store cannot be a key, one for each who asks."""
    try:
        logs = _known.setdefault(store, WeakValueDictionary())
    except TypeError:
        return Precedence()
    return logs.setdefault(timeline, Precedence())


@attrs.define(eq=False)
class Contest:
    """One thing to be written, tried until nobody else is faster."""

    _precedence: Precedence
    _rest: Callable[[int], float]
    _conflicts: int = attrs.field(default=0, init=False)

    def leave(self) -> None:
        """It is over, however it ended: give precedence back."""
        if self._first() is self:
            self._precedence.holder = None

    def _first(self) -> "Contest | None":
        holder = self._precedence.holder
        return holder() if holder else None

    def hold_back(self) -> Flow[None]:
        """Let go first who has precedence; but not for ever."""
        for pauses in range(PATIENCE):
            if self._first() in (None, self):
                return
            yield Pause(self._rest(pauses))

    def lost(self) -> Flow[None]:
        """Somebody else was faster: wait a little, longer each time, or take precedence."""
        self._conflicts += 1
        if self._conflicts >= POLITE_CONFLICTS and self._first() is None:
            self._precedence.holder = ref(self)
        if self._first() is not self:
            yield Pause(self._rest(self._conflicts))

    @property
    def is_hopeless(self) -> bool:
        """Whether it has been lost so often that it will always be."""
        return self._conflicts >= CONFLICTS_MAX
