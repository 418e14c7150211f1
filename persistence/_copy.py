"""Copies timelines from one store into another, whatever kinds of store they are.

A copy has the same versions and the same bytes: hides, compactions, prepared summaries and kinds that
nobody here knows are events like all others.  What is there already is not copied again, so a copy that
was interrupted goes on where it stopped, and a copy into the same backup every night writes what is new;
it reads all of the source, for the artifacts that older events name.
The source may be written to meanwhile: each timeline arrives as it was at some moment.
Archived events arrive as events; a log that has lost its oldest ones arrives as what is left of it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from blocks import (
    ArtifactId,
    DamagedStoreError,
    MisuseError,
    TimelineId,
    UnknownTimelineError,
    artifact_ids_in,
    decode_event,
    encode_event,
)
from persistence._stand_ins import forget_stand_ins, kept_in, stand_in
from persistence._store import Copyable, EventStore, HoldsArtifacts
from persistence.artifacts import ArtifactMetadata, Artifacts, copy_artifacts

PAGE: Final = 1_000


@attrs.frozen(kw_only=True)
class CopyReport:
    """What `copy_store` has written."""

    timelines: int = 0
    """Of which something was new."""
    events: int = 0
    artifacts: int = 0
    forgotten: int = 0
    """Events of these timelines that the source has no more; the copies begin behind them."""


def copy_store(
    source: EventStore, target: EventStore, timelines: Iterable[str] | None = None
) -> CopyReport:
    """Copy timelines, all or those named, with the artifacts that they put or name, into `target`.

    Artifacts that are encrypted are copied as they lie there, so no key is needed.

    Raises:
        UnknownTimelineError: `source` has no timeline of a name.
        DamagedStoreError: something cannot be read; what came before it is copied.
        MisuseError: `target` has another timeline of a name, or cannot keep one whose oldest events are
            forgotten; those before it are copied.
        ClosedError: one of them is closed.

    Whatever else a store raises: the copy goes on when the call is repeated.
    """
    infos = {info.id: info for info in source.list()}
    if timelines is not None:
        wanted = dict.fromkeys(map(TimelineId, timelines))
        if unknown := wanted.keys() - infos.keys():
            raise UnknownTimelineError(min(unknown))
        infos = {name: info for name, info in infos.items() if name in wanted}
    copied, forgotten, named = list[int](), 0, set[ArtifactId]()
    for name, info in infos.items():
        gone = kept_in(source, name).forgotten
        stand_in(target, info, gone)
        copied.append(_copy_timeline(source, target, name, named))
        forget_stand_ins(target, name, gone)
        forgotten += gone if copied[-1] else 0
    return CopyReport(
        timelines=sum(map(bool, copied)),
        events=sum(copied),
        artifacts=_copy_artifacts(source, target, set(infos), named),
        forgotten=forgotten,
    )


def _copy_timeline(
    source: EventStore, target: EventStore, name: TimelineId, named: set[ArtifactId]
) -> int:
    """The number of events that were new; adds the artifacts that the timeline names to `named`."""
    held, gone = target.head(name), kept_in(target, name).forgotten
    first = version = kept_in(source, name).forgotten
    while page := read_bytes(source, name, after=version):
        for _, data in page:
            named.update(artifact_ids_in(data.decode()))
        new = [data for seq, data in page if seq > held]
        if version < held and page[-1][0] > gone:
            _check_same(target, name, [(seq, data) for seq, data in page if seq <= held])
        if new:
            append_bytes(target, name, new, expected_version=page[-1][0] - len(new))
        version = page[-1][0]
    if held > version:
        raise MisuseError(
            f"{name!r} has {held} events there and {version} here; copy it back first"
        )
    return version - max(held, first)


def _check_same(target: EventStore, name: TimelineId, page: list[tuple[int, bytes]]) -> None:
    """Event ids are never given twice, so the last one stands for all before it."""
    last, data = page[-1]
    [(_, there)] = read_bytes(target, name, after=last - 1, limit=1)
    if decode_event(there).id != decode_event(data).id:
        raise MisuseError(
            f"the other store has another timeline {name!r}: its event {last} is not this one's;"
            " choose another store"
        )


def read_bytes(
    store: EventStore, name: TimelineId, *, after: int = 0, limit: int = PAGE
) -> Sequence[tuple[int, bytes]]:
    """What `store.read` gives, with the JSON of each event: as it is stored, where the store tells."""
    if isinstance(store, Copyable):
        return store.read_bytes(name, after=after, limit=limit)
    page = store.read(name, after=after, limit=limit)
    return [(version, encode_event(event)) for version, event in page]


def append_bytes(
    store: EventStore, name: TimelineId, events: Sequence[bytes], *, expected_version: int
) -> int:
    """`store.append` of events that are JSON; they are stored as they are, where the store can.

    Raises, besides what `append` does:
        CodecError: one of them is no event.
    """
    if isinstance(store, Copyable):
        return store.append_bytes(name, events, expected_version=expected_version)
    return store.append(name, [*map(decode_event, events)], expected_version=expected_version)


def _copy_artifacts(
    source: EventStore, target: EventStore, timelines: set[TimelineId], named: set[ArtifactId]
) -> int:
    if not isinstance(source, HoldsArtifacts):
        return 0
    theirs = source.artifacts()
    ours = target.artifacts() if isinstance(target, HoldsArtifacts) else None
    if not isinstance(theirs, Artifacts):
        return 0

    def is_wanted(about: ArtifactMetadata) -> bool:
        return about.timeline in timelines or about.id in named

    if isinstance(ours, Artifacts):
        return copy_artifacts(theirs, ours, is_wanted, _refuse)
    if any(is_wanted(entry.metadata) for entry in theirs.backend.entries()):
        raise MisuseError("these timelines have artifacts, and the other store keeps none")
    return 0


def _refuse(damage: str) -> None:
    raise DamagedStoreError(f"{damage}; `foldline repair` saves what is whole into a new store")
