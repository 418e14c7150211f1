"""Copies timelines from one store into another, of any kinds.

A copy has the same versions and the same bytes: hides, compactions, prepared summaries and unknown kinds are
copied like all other events.  Events and artifacts that the target already has are not copied again.  So an
interrupted copy continues where it stopped, and a nightly copy into the same backup reads and writes only what is
new: events after the end of the copied timeline, and artifacts by their list.  Artifacts are copied before the events
that name them, so that an interrupted copy has no event whose artifact is missing.
The source may be written to meanwhile: each timeline is copied as it was at some moment.
Archived events become ordinary events; of a log that has lost its oldest events, the rest is copied.
What was forgotten on request in the source is forgotten in the copy, too: when the event comes that hides it, the events
before it are compared.
"""

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from blocks import (
    ArtifactId,
    DamagedStoreError,
    Event,
    MisuseError,
    OpaqueEvent,
    TimelineId,
    UnknownTimelineError,
    artifact_ids_in,
    decode_event,
)
from persistence._archive import remove_archive
from persistence._log import TimelineInfo
from persistence._store import EventStore
from persistence.artifacts import ArtifactMetadata, ArtifactStore, copy_artifacts

PAGE: Final = 1_000


@attrs.frozen(kw_only=True)
class CopyReport:
    """What `EventStore.copy_to` has written."""

    timelines: int = 0
    """The number of timelines of which something was new."""
    events: int = 0
    artifacts: int = 0
    forgotten: int = 0
    """Events of these timelines that the source no longer has; the copies begin after them."""
    replaced: int = 0
    """Copied events of which something was forgotten on request since; now it is gone from the copies, too."""


def copy_store(
    source: EventStore, target: EventStore, timelines: Iterable[str] | None = None
) -> CopyReport:
    """See `EventStore.copy_to`."""
    infos = {info.id: info for info in source.list()}
    if timelines is not None:
        names = dict.fromkeys(map(TimelineId, timelines))
        if unknown := names.keys() - infos.keys():
            raise UnknownTimelineError(min(unknown))
        infos = {name: info for name, info in infos.items() if name in names}
    copies = _Copies(artifacts_of(source), artifacts_of(target))
    copies.take(lambda about: about.timeline in infos)
    counts, lost, forgotten = list[int](), list[str](), 0
    for name, info in infos.items():
        last = source.kept(name).forgotten
        stand_in(target, info, last)
        try:
            counts.append(_copy_timeline(source, target, name, copies))
        except DamagedStoreError as damage:
            lost.append(f"{name}: {damage}")
            continue
        forget_stand_ins(target, name, last)
        forgotten += last if counts[-1] else 0
    if lost or copies.damage:
        advice = ("`foldline repair` saves the undamaged part into a new store",)
        what = *lost, *copies.damage, *(advice if copies.damage else ())
        raise DamagedStoreError("; ".join((*what, "everything else was copied")))
    return CopyReport(
        timelines=sum(map(bool, counts)),
        events=sum(counts),
        artifacts=copies.copied,
        forgotten=forgotten,
        replaced=copies.replaced,
    )


def artifacts_of(store: EventStore) -> ArtifactStore | None:
    return store.artifacts() if store.keeps_artifacts else None


@attrs.define
class _Copies:
    """What a copy does with artifacts, and with what was forgotten."""

    _theirs: ArtifactStore | None
    _ours: ArtifactStore | None
    copied: int = 0
    replaced: int = 0
    damage: list[str] = attrs.field(factory=list[str])
    """A sentence for each artifact that cannot be copied."""
    _ids: set[ArtifactId] = attrs.field(factory=set[ArtifactId])

    def take(
        self, is_wanted: Callable[[ArtifactMetadata], bool], artifact: ArtifactId | None = None
    ) -> None:
        """Copy the artifacts that `is_wanted` accepts, except those that the target already has. With `artifact`,
        consider only that one.

        Raises:
            MisuseError: there is such an artifact, and the target cannot keep artifacts.
        """
        if self._theirs is None:
            return
        if self._ours is not None:
            self.copied += copy_artifacts(
                self._theirs, self._ours, is_wanted, self.damage.append, artifact
            )
        elif any(is_wanted(entry.metadata) for entry in self._theirs.backend.entries(artifact)):
            raise MisuseError(
                "these timelines have artifacts, but the target store cannot hold artifacts; choose another target"
            )

    def take_named(self, text: str) -> None:
        """Copy the artifacts whose ids occur in a text."""
        for artifact in sorted({*artifact_ids_in(text)} - self._ids):
            self.take(lambda _: True, artifact)
            self._ids.add(artifact)

    def forget(self, source: EventStore, target: EventStore, name: TimelineId, last: int) -> None:
        """Replace the copied events up to version `last` that the source has replaced, and remove their artifacts."""
        first = max(source.kept(name).forgotten, target.kept(name).forgotten)
        logs = (store.log_bytes(name, after=first, last=last) for store in (source, target))
        new = {v: (data, old) for (v, data), (_, old) in zip(*logs, strict=True) if data != old}
        for version in source.altered(name, first, last) if new else ():
            new.pop(version, None)
        if not new or not target.can_remove:
            return
        if self._theirs and self._ours:
            after, before = (
                {a for data in datas for a in artifact_ids_in(data.decode())}
                for datas in zip(*new.values(), strict=True)
            )
            for artifact in before - after:
                if not any(
                    e.metadata.timeline == name for e in self._theirs.backend.entries(artifact)
                ):
                    self._ours.forget(name, artifact)
        removed = target.rewrite(name, {v: decode_event(data) for v, (data, _) in new.items()})
        for file in removed.unused:
            remove_archive(file)
        target.erase()
        self.replaced += len(new)


def _copy_timeline(
    source: EventStore, target: EventStore, name: TimelineId, copies: _Copies
) -> int:
    """Copy the new events of a timeline; return how many there were."""
    head, forgotten = target.head(name), source.kept(name).forgotten
    if head > (there := source.head(name)):
        raise MisuseError(
            f"{name!r} has {head} events in the target store and only {there} in the source; copy it back first"
        )
    if head > max(forgotten, target.kept(name).forgotten):
        _check_same(source, target, name, head)
    first = version = max(head, forgotten)
    while page := source.read_bytes(name, after=version):
        events = [data for _, data in page]
        if head and any(b"BlocksHidden" in data and b'"requested"' in data for data in events):
            copies.forget(source, target, name, head)
        for data in events:
            copies.take_named(data.decode())
        version = target.append_bytes(name, events, expected_version=version)
    return version - first


def _check_same(source: EventStore, target: EventStore, name: TimelineId, last: int) -> None:
    """Event ids are unique, so if the last copied event has the same id, all events before it are the same."""
    here, there = (
        decode_event(data).id
        for store in (source, target)
        for _, data in store.read_bytes(name, after=last - 1, limit=1)
    )
    if here != there:
        raise MisuseError(
            f"the target store has a different timeline {name!r}: its event {last} is not the event {last} of the source;"
            " choose another store"
        )


# Copies a log that has lost its oldest events: until the copy is complete, it has stand-ins for them.
#
# Versions are counted from the first event, so the copy needs events at the lost versions.  Once all remaining
# events have arrived, and with them the compaction that needs nothing older, the stand-ins are forgotten as well.
# They are empty, and an interrupted copy continues after them.


def stand_in(target: EventStore, info: TimelineInfo, last: int) -> None:
    """Append stand-ins for events up to version `last` that are not there yet.

    Raises:
        MisuseError: the target cannot remove events, or it has older events and lacks some after them.
    """
    head = target.head(info.id)
    if head >= last:
        return
    if not target.can_remove:
        raise MisuseError(
            f"events 1 to {last} of {info.id!r} were removed, and the target store cannot hold a log that"
            " begins later; choose another target"
        )
    if head and not _is_stand_in(target, info.id, head):
        raise MisuseError(
            f"{info.id!r} ends at event {head} in the target and begins at event {last + 1} in the source:"
            " neither store has the events between them; choose another target"
        )
    fill(target, info, last)


def fill(target: EventStore, info: TimelineInfo, last: int) -> None:
    """Append stand-ins for the events after the last existing one up to version `last`."""
    for first in range(target.head(info.id), last, PAGE):
        versions = range(first + 1, min(first + PAGE, last) + 1)
        events = [_event(version, info.created_at) for version in versions]
        target.append(info.id, events, expected_version=first)


def forget_stand_ins(target: EventStore, name: TimelineId, last: int) -> None:
    """Remove the stand-ins for the events up to version `last`, if there are any.

    Raises:
        MisuseError: the window of the copy needs these versions.
    """
    if not last or target.kept(name).forgotten >= last or not target.can_remove:
        return
    if _is_stand_in(target, name, last):
        target.trim(name, last + 1)


def _event(version: int, at: float) -> Event:
    return decode_event(f'{{"event":"Forgotten","id":"forgotten {version}","at":{at!r}}}'.encode())


def _is_stand_in(store: EventStore, name: TimelineId, version: int) -> bool:
    [(_, event)] = store.read(name, after=version - 1, limit=1)
    return isinstance(event, OpaqueEvent) and event.id == f"forgotten {version}"
