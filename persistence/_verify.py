"""Checks whether a store is consistent, every promise about stored bytes, and saves what is readable of a damaged one."""

from collections.abc import Iterator
from contextlib import closing, nullcontext
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

import attrs

from blocks import CodecError, DamagedStoreError, MisuseError, decode_event
from persistence._archive import archive_problems
from persistence._copy import artifacts_of, fill, forget_stand_ins, stand_in
from persistence._file import FileLocation
from persistence._log import Rest, TimelineInfo, event_problems, is_sound
from persistence._open import SCHEMES, locate_store, scheme_of
from persistence._receipt import missing
from persistence._store import PROBLEMS_MAX, EventStore, StoreLocation, StoreProblem, StoreReport
from persistence.artifacts import ArtifactStore, KeyRing, copy_artifacts, open_artifacts

PAGE: Final = 1_000


def verify(
    target: "EventStore | ArtifactStore | StoreLocation | str | PathLike[str]",
    *,
    keys: KeyRing | None = None,
    expect: str | None = None,
) -> StoreReport:
    """Read a whole store, given as an object, a path or a URL, and report what is damaged or inconsistent.

    Checks that versions are gap-free; that every event can be read, agrees with its row, and is the one that was
    written there, by the chain of its timeline; that each timeline ends as its head says; that no block id occurs twice in
    a timeline; that every artifact exists and has its original content; and that nothing acknowledged is missing, as
    far as the store can know.  With the `receipt` of an earlier time as `expect`, also that everything of that time is
    there.  Changes nothing.  `target` may also be an artifact store, or the folder or URL of one.
    For encrypted artifacts it checks the size, and with their `keys` also the content.

    Raises:
        StoreLockedError: another process has the file open.
        MisuseError: there is no such file, it is not a store, or `expect` is not a receipt.
        ClosedError: the store was closed.
    """
    try:
        if isinstance(target, str | PathLike):
            return _verified_at(target, keys, expect)
        if not isinstance(cast("object", target), EventStore | ArtifactStore | StoreLocation):
            raise MisuseError(
                f"{target!r:.80} is not a store; give a store, or the path or URL of one"
            )
        report = target.verify(keys=keys)
        if expect is None or isinstance(target, ArtifactStore):
            return report
        with (
            closing(target.open())
            if isinstance(target, StoreLocation)
            else nullcontext(target) as store
        ):
            problems = (*report.problems, *missing(store, expect))
        return attrs.evolve(report, problems=problems[:PROBLEMS_MAX])
    except DamagedStoreError as damage:
        return StoreReport(problems=(StoreProblem(what=str(damage)),))


def _verified_at(
    where: "str | PathLike[str]", keys: KeyRing | None, expect: str | None
) -> StoreReport:
    scheme = scheme_of(where)
    if scheme not in SCHEMES or (not scheme and _is_folder_of_artifacts(where)):
        with open_artifacts(str(where), keys=keys) as artifacts:
            return artifacts.verify()
    return verify(locate_store(where), keys=keys, expect=expect)


def _is_folder_of_artifacts(path: "str | PathLike[str]") -> bool:
    return is_sound(fspath(path)) and all((Path(path) / n).is_dir() for n in ("content", "entries"))


def read_through(store: EventStore) -> StoreReport:
    """The report on a store that has no `verify` of its own, from reading each log."""
    infos = store.list()
    problems = chain.from_iterable(_log_problems(store, info) for info in infos)
    return StoreReport(
        timelines=len(infos),
        events=sum(info.version for info in infos),
        problems=tuple(islice(problems, PROBLEMS_MAX)),
    )


def _log_problems(store: EventStore, info: TimelineInfo) -> Iterator[StoreProblem]:
    rest = store.kept(info.id)
    yield from archive_problems(info.id, rest)
    count, blocks = rest.removed, dict[str, int]()
    for version, event in store.log(info.id, after=count):
        count += 1
        if version != count:
            what = f"version {count} is missing, version {version} is in its place"
            yield StoreProblem(timeline=info.id, version=count, what=what)
            return
        for what in event_problems(version, event, blocks):
            yield StoreProblem(timeline=info.id, version=version, what=what)
    if count < info.version:
        what = f"it has {count} events, and should have {info.version}"
        yield StoreProblem(timeline=info.id, what=what)


# Saves everything readable of a damaged store into a new one; the damaged store is not changed.
#
# Versions stay the same: an empty event replaces each event that cannot be read. Unreadable events at the beginning
# of a log are forgotten if its window does not need them.


@attrs.frozen(kw_only=True)
class RepairReport:
    """The result of `repair`: what was saved and what was lost."""

    timelines: int = 0
    events: int = 0
    artifacts: int = 0
    lost: tuple[str, ...] = ()
    """A sentence for each thing that could not be read."""


def repair(
    where: "StoreLocation | str | PathLike[str]", target: "str | PathLike[str]"
) -> RepairReport:
    """Save everything readable of the store `where`, which no process may have open, into a new store `target`.

    Raises:
        MisuseError: there is no such store, or `target` exists already.
        StoreLockedError: a process has it open.
        DamagedStoreError: nothing of it can be read.
        StoreError: the operating system denies reading it, or writing the new store.
    """
    source = locate_store(where) if isinstance(where, str | PathLike) else where
    new = locate_store(target)
    if not source.exists():
        raise MisuseError(f"there is no store at {source} to repair")
    if new.exists():
        raise MisuseError(f"{new} already exists; give the path of a new store")
    try:
        # Beside a new file: a disk with room for that has room for the copy.
        beside = new.path.parent if isinstance(new, FileLocation) else None
        with TemporaryDirectory(dir=beside if beside and beside.is_dir() else None) as folder:
            copy, cut = source.readable_copy(Path(folder))
            with closing(copy.open()) as damaged, closing(new.open()) as saved:
                return _saved(damaged, saved, cut)
    except BaseException:
        if new.exists():
            new.remove()
        raise


def _saved(damaged: EventStore, saved: EventStore, cut: str) -> RepairReport:
    lost, counts, artifacts = [cut] if cut else list[str](), list[int](), 0
    for info in damaged.list():
        try:
            counts.append(_Saving(damaged, saved, info, damaged.kept(info.id), lost).run())
        except DamagedStoreError as damage:
            lost.append(f"{info.id}: {damage}")
    theirs, ours = artifacts_of(damaged), artifacts_of(saved)
    if theirs is not None and ours is not None:
        artifacts = copy_artifacts(theirs, ours, lambda _: True, lost.append)
    return RepairReport(
        timelines=sum(map(bool, counts)),
        events=sum(counts),
        artifacts=artifacts,
        lost=tuple(lost),
    )


@attrs.define
class _Saving:
    """The repair of one timeline, from its first event to its last."""

    _damaged: EventStore
    _saved: EventStore
    _info: TimelineInfo
    _rest: Rest
    _lost: list[str]
    _count: int = 0
    _first: int = 0
    """The version of the first saved event; 0: none was saved."""
    _hole: int = 0
    """The first version of the current run of unreadable events; 0: the last event was readable."""
    _why: str = ""
    """Why the events of this run cannot be read."""

    def run(self) -> int:
        """Save the timeline; return the number of saved events."""
        version = forgotten = self._rest.forgotten
        stand_in(self._saved, self._info, forgotten)
        limit = PAGE
        while version < self._info.version:
            try:
                version = self._page(version, limit)
                limit = min(PAGE, limit * 8)
            except (CodecError, DamagedStoreError) as damage:
                if limit == 1:
                    version = self._passed(version, damage)
                limit = max(1, limit // 8)
        self._end_hole(version)
        self._forget(forgotten)
        return self._count

    def _page(self, version: int, limit: int) -> int:
        """Save at most `limit` events after `version`; return the version of the last one."""
        name = self._info.id
        events = [data for _, data in self._damaged.read_bytes(name, after=version, limit=limit)]
        if not events:
            raise DamagedStoreError(f"event {version + 1} is missing")
        for data in events:
            decode_event(data)
        self._end_hole(version)
        fill(self._saved, self._info, version)
        last = self._saved.append_bytes(name, events, expected_version=version)
        self._count += len(events)
        self._first = self._first or version + 1
        for altered in self._damaged.altered(name, version, last):
            what = "was altered, its checksum says; it is saved as it is"
            self._lost.append(f"{name}: event {altered} {what}")
        return last

    def _passed(self, version: int, damage: Exception) -> int:
        """Note that the event after `version` cannot be read; return the version after which to continue.

        If the event is in an archive file that cannot be read, this is the last version in the archive.
        """
        due = version + 1
        archive = next((a for a in self._rest.archives if a.first <= due <= a.last), None)
        if archive is None or isinstance(damage, CodecError):
            self._hole, self._why = self._hole or due, self._why or str(damage)
            return due
        self._end_hole(version)
        self._hole, self._why = due, str(damage)
        self._end_hole(archive.last)
        return archive.last

    def _end_hole(self, last: int) -> None:
        if self._hole:
            self._lost.append(f"{self._info.id}: events {self._hole} to {last}: {self._why}")
        self._hole, self._why = 0, ""

    def _forget(self, forgotten: int) -> None:
        """Forget the stand-ins at the beginning of the saved log, up to its first saved event."""
        try:
            forget_stand_ins(self._saved, self._info.id, max(forgotten, self._first - 1))
        except MisuseError:  # the compaction after which they are not needed could not be read
            if forgotten:
                what = f"events 1 to {forgotten}, which were forgotten: others stand for them"
                self._lost.append(f"{self._info.id}: {what}")
