"""Size limits of stored data, the same in every store.

Every database has a limit of its own (PostgreSQL 1 GB per field, or 255 MB if SQL reads its JSON; SQLite 1 GB per
row), and none reports clearly that it was exceeded.  The limits here are lower than all of these, and higher than what
a provider accepts in one request (32 MB).  Larger content belongs into an artifact, which is stored in pieces.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from blocks import BlockAppended, TimelineId, TooLargeError, decode_event, kind_of, tag_of

EVENT_BYTES_MAX: Final = 64_000_000
"""Bytes of the JSON of one event."""
APPEND_BYTES_MAX: Final = 256_000_000
"""Bytes of all events of one append; also of a single copied event, which an older version may have stored."""
APPEND_EVENTS_MAX: Final = 200_000
"""Events in one append."""
DESCRIPTION_BYTES_MAX: Final = 64_000
"""Bytes of the JSON of an artifact's description."""


class _Sized(Protocol):
    @property
    def data(self) -> bytes: ...


def check_count(timeline: TimelineId, count: int) -> None:
    """Refuse an append of too many events.

    Raises:
        TooLargeError: there are more than `APPEND_EVENTS_MAX`.
    """
    if count > APPEND_EVENTS_MAX:
        advice = "append them in several calls, each at the version that the one before returned"
        raise TooLargeError(
            f"an append to {timeline!r}", count, APPEND_EVENTS_MAX, advice, unit="events"
        )


def check_sizes(timeline: TimelineId, events: Sequence[_Sized], event_bytes_max: int) -> None:
    """Refuse events that are too large, one by one or together.

    Raises:
        TooLargeError: one event has more than `event_bytes_max` bytes, or all together more than `APPEND_BYTES_MAX`.
    """
    total = 0
    for number, event in enumerate(events, 1):
        total += len(event.data)
        if len(event.data) > event_bytes_max:
            what = f"event {number} of an append to {timeline!r} ({_about(event.data)})"
            raise TooLargeError(what, len(event.data), event_bytes_max, TO_AN_ARTIFACT)
    if total > APPEND_BYTES_MAX:
        advice = "append them in several calls, each at the version that the one before returned"
        raise TooLargeError(f"an append to {timeline!r}", total, APPEND_BYTES_MAX, advice)


TO_AN_ARTIFACT: Final = (
    "put the content into an artifact (`artifacts.put` of the timeline) and append its id, or append"
    " it in parts"
)


def _about(data: bytes) -> str:
    """Name the event in an error message, without quoting its content."""
    event = decode_event(data)
    if not isinstance(event, BlockAppended):
        return f"{kind_of(event)} {event.id!r:.100}"
    return f"the {tag_of(event.block)} {event.block.id!r:.100}"
