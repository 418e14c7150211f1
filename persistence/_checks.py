"""What every store refuses before it looks at its own data."""

from collections.abc import Mapping, Sequence

from blocks import Event, MisuseError, TimelineId
from persistence._heads import Head
from persistence._place import is_sound
from persistence._store import TimelineInfo
from persistence._stored import StoredEvent, store_event


def checked_events(
    timeline_id: TimelineId, events: Sequence[Event], expected_version: int
) -> list[StoredEvent]:
    """The events as bytes.

    Raises:
        MisuseError: there are none, or the id or the version cannot be one.
        CodecError: an event cannot be stored.
    """
    if not events:
        raise MisuseError(f"an append to {timeline_id!r} needs at least one event")
    if expected_version < 0:
        raise MisuseError(f"expected_version={expected_version}: versions start at 0")
    if not timeline_id or not is_sound(timeline_id):
        raise MisuseError(f"{timeline_id!r} cannot name a timeline; use some printable text")
    return [store_event(event) for event in events]


def checked_page(after: int, limit: int) -> None:
    """Refuse a page that no reader can mean."""
    if after < 0 or limit < 1:
        raise MisuseError(f"after={after}, limit={limit}: read after 0 or more, at least 1 event")


def checked_fork(source: TimelineId, at: int, head: Head) -> None:
    """Refuse a fork at a version that `source` never had."""
    if not 1 <= at <= head.version:
        raise MisuseError(f"cannot fork {source!r} at {at}: its versions are 1 to {head.version}")


def timeline_infos(heads: Mapping[TimelineId, Head]) -> list[TimelineInfo]:
    """What `list` returns; equally old ones stay in the order of `heads`."""
    infos = [
        TimelineInfo(
            id=name, version=head.version, created_at=head.created_at, updated_at=head.updated_at
        )
        for name, head in heads.items()
    ]
    return sorted(infos, key=lambda info: info.created_at)
