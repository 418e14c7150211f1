"""Retries after a version conflict, when several timelines write one log.

The slower writer waits, longer after each conflict and never in step with others, and tries again.  This starves
no writer: what is retried is short (a render that lost a conflict need not decide everything anew, see
`Engine.settle_behind`), and each conflict means that another writer succeeded.
"""

from collections.abc import Callable
from typing import Final
from zlib import crc32

import attrs

from blocks import TimelineId, VersionConflictError
from timeline._flow import Flow, Pause
from timeline.engine._settings import IdFactory

CONFLICTS_MAX: Final = 300
"""Conflicts in a row, after about fifteen seconds of waiting, before a commit gives up."""
REST_SECONDS: Final = 0.001
"""Longest wait in seconds after the first conflict, about the duration of a commit; it doubles with each conflict."""
REST_SECONDS_MAX: Final = 0.1


def rest_after(name: str, conflicts: int) -> float:
    """Seconds to wait after this many conflicts in a row. The wait grows with each conflict, and depends on the
    name, so that different writers do not retry at the same time."""
    longest = min(REST_SECONDS * 2.0 ** min(conflicts, 10), REST_SECONDS_MAX)
    return longest * crc32(f"{name} {conflicts}".encode()) / 2**32


@attrs.define
class Contest:
    """The repeated tries of one commit against other writers."""

    _timeline: TimelineId
    _rest: Callable[[str, int], float]
    _ids: IdFactory
    _name: str = attrs.field(default="", init=False)
    _conflicts: int = attrs.field(default=0, init=False)

    def lost(self, conflict: VersionConflictError) -> Flow[None]:
        """Another writer was faster: wait before the next try.

        Raises:
            VersionConflictError: there were `CONFLICTS_MAX` conflicts, or waiting cannot help.
        """
        if conflict.expected == conflict.found:  # the store contradicts itself
            raise conflict
        if isinstance(conflict.__cause__, VersionConflictError):  # an inner contest has given up
            raise conflict
        self._conflicts += 1
        if self._conflicts >= CONFLICTS_MAX:
            raise self._hopeless(conflict) from conflict
        self._name = self._name or self._ids()
        yield Pause(self._rest(self._name, self._conflicts))

    def _hopeless(self, conflict: VersionConflictError) -> VersionConflictError:
        expected, found = conflict.expected, conflict.found
        advice = (
            f"timeline {self._timeline!r}: somebody else appended first {self._conflicts} times in a row"
            f" (expected version {expected}, found {found}); nothing of this call is written. Repeat it when"
            " fewer append at once, or give each writer a timeline of its own (fork)"
        )
        return VersionConflictError(expected=expected, found=found, advice=advice)
