"""Saves what can be read of a damaged store into a new one; the damaged one stays as it is.

A log is kept up to its first event that cannot be read, and not beyond: versions have no gaps.
"""

from contextlib import closing
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from blocks import CodecError, DamagedStoreError, MisuseError, TimelineId
from persistence._copy import PAGE, append_bytes, read_bytes
from persistence._open import locate_store
from persistence._place import checked_path
from persistence._retention import kept_of
from persistence._stand_ins import forget_stand_ins, stand_in
from persistence._store import EventStore, HoldsArtifacts, StoreLocation, TimelineInfo
from persistence.artifacts import Artifacts, copy_artifacts


@attrs.frozen(kw_only=True)
class RepairReport:
    """What `repair` has saved."""

    timelines: int = 0
    events: int = 0
    artifacts: int = 0
    lost: tuple[str, ...] = ()
    """A sentence for each thing that could not be read."""


def repair(
    where: "StoreLocation | str | PathLike[str]", target: "str | PathLike[str]"
) -> RepairReport:
    """Save what can be read of the store `where`, which nobody has open, into a new store `target`.

    Raises:
        MisuseError: there is no such store, or `target` is there already.
        StoreLockedError: somebody has it open.
        DamagedStoreError: nothing can be read of it.
        StoreError: the system does not let us read it, or write the new one.
    """
    source = locate_store(where) if isinstance(where, str | PathLike) else where
    new = locate_store(target)
    if not source.exists():
        raise MisuseError(f"no store {source} to repair")
    if new.exists():
        raise MisuseError(f"{new} is there already; give the path of a new store")
    try:
        with TemporaryDirectory(dir=_folder_for(target)) as folder:
            copy, cut = source.readable_copy(Path(folder))
            with closing(copy.open()) as damaged, closing(new.open()) as saved:
                return _saved(damaged, saved, cut)
    except BaseException:
        if new.exists():
            new.remove()
        raise


def _folder_for(target: "str | PathLike[str]") -> Path | None:
    """A disk with room for the new store has room for the copy."""
    return parent if (parent := checked_path(target).parent).is_dir() else None


def _saved(damaged: EventStore, saved: EventStore, cut: str) -> RepairReport:
    lost = [cut] if cut else []
    infos = damaged.list()
    events = [_save_timeline(damaged, saved, info, lost) for info in infos]
    return RepairReport(
        timelines=sum(map(bool, events)),
        events=sum(events),
        artifacts=_save_artifacts(damaged, saved, lost),
        lost=tuple(lost),
    )


def _save_timeline(
    damaged: EventStore, saved: EventStore, info: TimelineInfo, lost: list[str]
) -> int:
    """The number of events that were saved."""
    gone, limit = kept_of(damaged, info.id).forgotten, PAGE
    stand_in(saved, info, gone)
    version = gone
    while version < info.version:
        try:
            version = _save_page(damaged, saved, info.id, version, limit)
        except (CodecError, DamagedStoreError) as damage:
            if limit == 1:
                lost.append(f"{info.id}: events {version + 1} to {info.version}: {damage}")
                break
            limit = max(1, limit // 8)
    try:
        forget_stand_ins(saved, info.id, gone)
    except MisuseError:  # the compaction that needs nothing older is among what is lost
        lost.append(f"{info.id}: events 1 to {gone}, which were forgotten: others stand for them")
    return version - gone


def _save_page(
    damaged: EventStore, saved: EventStore, name: TimelineId, version: int, limit: int
) -> int:
    page = read_bytes(damaged, name, after=version, limit=limit)
    if not page:
        raise DamagedStoreError(f"event {version + 1} is not there")
    return append_bytes(saved, name, [data for _, data in page], expected_version=version)


def _save_artifacts(damaged: EventStore, saved: EventStore, lost: list[str]) -> int:
    if not isinstance(damaged, HoldsArtifacts) or not isinstance(saved, HoldsArtifacts):
        return 0
    theirs, ours = damaged.artifacts(), saved.artifacts()
    if not isinstance(theirs, Artifacts) or not isinstance(ours, Artifacts):
        return 0
    return copy_artifacts(theirs, ours, lambda _: True, lost.append)
