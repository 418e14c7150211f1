"""Copies a log that has lost its oldest events: until the copy is complete, it has stand-ins for them.

Versions are counted from the first event, so the copy needs events at the lost versions.  Once all remaining
events have arrived, and with them the compaction that needs nothing older, the stand-ins are forgotten as well.
They are empty, and an interrupted copy continues after them.
"""

from typing import Final

from blocks import Event, MisuseError, OpaqueEvent, TimelineId, decode_event
from persistence._retention import Retains, kept_of
from persistence._store import EventStore, TimelineInfo

PAGE: Final = 1_000


def stand_in(target: EventStore, info: TimelineInfo, gone: int) -> None:
    """Append stand-ins for events up to version `gone` that are not there yet.

    Raises:
        MisuseError: the target cannot remove events, or it has older events and lacks some after them.
    """
    held = target.head(info.id)
    if held >= gone:
        return
    if not isinstance(target, Retains):
        raise MisuseError(
            f"events 1 to {gone} of {info.id!r} are forgotten, and the other store cannot keep a log that"
            " begins later; choose another store"
        )
    if held and not _is_stand_in(target, info.id, held):
        raise MisuseError(
            f"{info.id!r} ends at event {held} there and begins at event {gone + 1} here, so what is"
            " between them is nowhere; choose another store"
        )
    fill(target, info, gone)


def fill(target: EventStore, info: TimelineInfo, last: int) -> None:
    """Append stand-ins for the events after the last existing one up to version `last`."""
    for first in range(target.head(info.id), last, PAGE):
        versions = range(first + 1, min(first + PAGE, last) + 1)
        events = [_event(version, info.created_at) for version in versions]
        target.append(info.id, events, expected_version=first)


def forget_stand_ins(target: EventStore, name: TimelineId, gone: int) -> None:
    """Remove the stand-ins for the events up to version `gone`, if there are any.

    Raises:
        MisuseError: the window of the copy needs these versions.
    """
    if not gone or kept_of(target, name).forgotten >= gone or not isinstance(target, Retains):
        return
    if _is_stand_in(target, name, gone):
        target.trim(name, gone + 1)


def _event(version: int, at: float) -> Event:
    return decode_event(f'{{"event":"Forgotten","id":"forgotten {version}","at":{at!r}}}'.encode())


def _is_stand_in(store: EventStore, name: TimelineId, version: int) -> bool:
    [(_, event)] = store.read(name, after=version - 1, limit=1)
    return isinstance(event, OpaqueEvent) and event.id == f"forgotten {version}"
