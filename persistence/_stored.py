"""What a store keeps of one event: its bytes, and the few fields that it looks things up by."""

import attrs

from blocks import Event, RangeCompacted, RangeExpanded, clean_json, encode_event, kind_of


@attrs.frozen(kw_only=True)
class StoredEvent:
    """One event on its way to a disk; `data` is what is kept, the rest is read from it."""

    id: str
    kind: str
    at: float
    ref: int | None
    """Of a `RangeCompacted` its cut, of a `RangeExpanded` the compaction it undoes, else None."""
    data: bytes


def store_event(event: Event) -> StoredEvent:
    """The event as bytes.

    Raises:
        CodecError: the event holds something that is no data at all.
    """
    return StoredEvent(
        id=clean_json(event.id),
        kind=clean_json(kind_of(event)),
        at=float(event.at),
        ref=ref_of(event),
        data=encode_event(event),
    )


def ref_of(event: Event) -> int | None:
    """The version that decides about the window, if the event has one."""
    match event:
        case RangeCompacted():
            return event.cut
        case RangeExpanded():
            return event.compaction
        case _:
            return None
