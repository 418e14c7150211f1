"""Archives, and how every store removes events from a log: an archive has the oldest events of a timeline, as a Parquet
file, their JSON byte for byte.

A file is written under another name, synced, and renamed, before the store removes any row; it is never
changed afterwards.  At a URL, it is an object, which appears as a whole.  Its hash is in the store's manifest, and a file
with another hash is not read by the store.  Any DuckDB can show the file with `read_parquet`.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from hashlib import file_digest, sha256
from io import BufferedReader
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile, gettempdir, mkstemp
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from weakref import finalize

import attrs

from blocks import (
    CodecError,
    DamagedStoreError,
    Event,
    FoldlineError,
    MisuseError,
    Recorded,
    StoreError,
    TimelineId,
    decode_event,
)
from persistence._bucket import Objects, is_url
from persistence._file import sync_folder, system_errors
from persistence._log import (
    ArchivedRange,
    Head,
    Removed,
    Rest,
    StoredEvent,
    Walk,
    chain_step,
    checked_rewrite,
    checked_trim,
    damaged,
    events_of,
)
from persistence._store import StoreProblem

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row: TypeAlias = tuple[int, str]
"""A version, and the JSON of its event."""
INSERTED: Final = 500
"""Rows in one INSERT."""
PART_BYTES: Final = 2**20
"""Bytes of a file that are read at once to upload it."""
_TABLE: Final = "CREATE TABLE archived(timeline VARCHAR, version BIGINT, payload VARCHAR)"
_INSERT: Final = "INSERT INTO archived SELECT ?, unnest(?::BIGINT[]), unnest(?::VARCHAR[])"
_COPY: Final = """
COPY (SELECT * FROM archived ORDER BY version) TO '{file}'
(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 10000, USE_TMP_FILE false)
"""
_READ: Final = """
SELECT version, payload FROM read_parquet(?) WHERE version BETWEEN ? AND ? ORDER BY version
"""


def checked_place(place: "str | os.PathLike[str]") -> str:
    """The folder or the URL, if archives can be written there.

    Raises:
        MisuseError: there is no such folder or bucket.
        StoreError: the bucket cannot be reached.
    """
    if is_url(place):
        return Objects.at(str(place)).url
    if not Path(place).is_dir():
        raise MisuseError(f"the archive folder {place} does not exist; create it")
    return os.fspath(place)


def write_archive(
    place: "str | os.PathLike[str]", timeline: TimelineId, rows: Iterable[Row]
) -> ArchivedRange:
    """Write the events, oldest first and without a gap, into a new file in a folder, or a new object below a URL; it is
    durable on return.

    Raises:
        MisuseError: there is no such folder or bucket.
        StoreError: the file could not be written.
    """
    checked = checked_place(place)
    folder = Path(gettempdir() if is_url(checked) else checked)
    with system_errors(folder):
        folder = folder.resolve()
        handle, path = mkstemp(suffix=".new", dir=folder)
        os.close(handle)
        unfinished = Path(path)
        try:
            versions = _write(unfinished, timeline, rows)
            with unfinished.open("rb") as file:
                if is_url(checked):
                    archive = _archive_of(file, timeline, versions, checked)
                    file.seek(0)
                    objects, name = _in_bucket(archive.file)
                    objects.put(name, iter(partial(file.read, PART_BYTES), b""))
                    return archive
                os.fsync(file.fileno())
                archive = _archive_of(file, timeline, versions, str(folder))
            unfinished.replace(archive.file)
            sync_folder(folder)
            return archive
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()


def remove_archive(file: str) -> bool:
    """Remove an archive; return whether it was there, and is gone."""
    try:
        if is_url(file):
            objects, name = _in_bucket(file)
            objects.delete(name)
        else:
            Path(file).unlink()
    except (OSError, StoreError, MisuseError):
        return False
    return True


def _write(file: Path, timeline: TimelineId, rows: Iterable[Row]) -> tuple[int, int]:
    """Write the rows into a file; return the first and the last version."""
    import duckdb

    first = last = 0
    with _errors(file), duckdb.connect(config={"threads": 1}) as database:
        database.execute(_TABLE)
        left = iter(rows)
        while some := list(islice(left, INSERTED)):
            versions, payloads = zip(*some, strict=True)
            database.execute(_INSERT, [timeline, list(versions), list(payloads)])
            first, last = first or versions[0], versions[-1]
        database.execute(_COPY.format(file=str(file).replace("'", "''")))
    return first, last


def _archive_of(
    file: BufferedReader, timeline: TimelineId, versions: tuple[int, int], place: str
) -> ArchivedRange:
    """The archive that this file is at a place, where it is named after its timeline, versions and hash."""
    digest = file_digest(file, "sha256").hexdigest()
    first, last = versions
    name = re.sub(r"[^A-Za-z0-9._-]", "_", timeline)[:80]
    path = f"{place}/{name}.{first}-{last}.{digest[:12]}.parquet"
    return ArchivedRange(first=first, last=last, file=path, sha256=digest)


def archived_rows(archive: ArchivedRange, first: int, last: int) -> list[Row]:
    """The rows of an archive with versions from `first` to `last`.

    Raises:
        DamagedStoreError: the file is missing, or was changed.
    """
    first, last = max(first, archive.first), min(last, archive.last)
    with _checked(archive) as path, _errors(Path(archive.file)), _reader().cursor() as cursor:
        rows = cursor.execute(_READ, [path, first, last]).fetchall()
    if [version for version, _ in rows] != list(range(first, last + 1)):
        raise _damaged(archive, "does not contain exactly these versions")
    return rows


def at_hand(rest: Rest) -> tuple[Rest, str]:
    """See `EventStore.at_hand`."""
    for number, archive in reversed([*enumerate(rest.archives, 1)]):
        if why := _problem(archive):
            return attrs.evolve(rest, forgotten=archive.last, archives=rest.archives[number:]), why
    return rest, ""


def archived_within(rest: Rest, first: int, last: int) -> Iterator[Row]:
    """The archived rows of a log with versions from `first` to `last`.

    Raises:
        DamagedStoreError: a file is missing, or was changed.
    """
    for archive in rest.within(first, last):
        yield from archived_rows(archive, first, last)


def archived_events(archive: ArchivedRange, first: int, last: int) -> list[Recorded]:
    """The events of an archive with versions from `first` to `last`.

    Raises:
        DamagedStoreError: the file is missing, or was changed.
    """
    try:
        return [(v, decode_event(data)) for v, data in archived_rows(archive, first, last)]
    except CodecError as error:
        raise _damaged(archive, f"contains data that is not an event ({error})") from error


def archive_problems(
    timeline: TimelineId, rest: Rest, walk: Walk | None = None
) -> Iterator[StoreProblem]:
    """Problems of the archives of a timeline; each is read completely, and `walk` passes its events."""
    _downloaded.cache_clear()  # it is about what is in the bucket
    walk = walk or Walk()
    for archive in rest.archives:
        try:
            for version, event in archived_events(archive, archive.first, archive.last):
                walk.step(chain_step(version, event.id))
        except FoldlineError as error:
            walk.lose()
            yield StoreProblem(timeline=timeline, version=archive.first, what=str(error))


def rewritten(rest: Rest, timeline: TimelineId, payloads: Mapping[int, str]) -> Rest:
    """What is left of a log after these versions get other JSON. For each archive that has one of them, write a new
    file beside the old one.

    Raises:
        DamagedStoreError: an old file is missing, or was changed.
        StoreError: a new one could not be written.
    """
    archives = list(rest.archives)
    for place, old in enumerate(archives):
        if any(old.first <= version <= old.last for version in payloads):
            rows = archived_rows(old, old.first, old.last)
            changed = [(version, payloads.get(version, payload)) for version, payload in rows]
            archives[place] = write_archive(old.file.rpartition("/")[0], timeline, changed)
    return attrs.evolve(rest, archives=tuple(archives))


@contextmanager
def _checked(archive: ArchivedRange) -> Generator[str]:
    """The path at which an archive can be read, whose content was compared with its hash.

    Raises:
        DamagedStoreError: it is missing, or was changed.
        StoreError: the bucket cannot be reached.
    """
    if is_url(archive.file):
        copy = _downloaded(archive)  # which stays open until it is used by nobody
        yield f"/dev/fd/{copy.handle}"
        return
    try:
        status = Path(archive.file).stat()
        digest = _digest(archive.file, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise _damaged(archive, f"cannot be read ({error.strerror})", MOVED) from error
    if digest != archive.sha256:
        raise _damaged(archive, "was changed after it was written")
    yield archive.file


def _problem(archive: ArchivedRange) -> str:
    """Why an archive cannot be read now; empty: it can."""
    try:
        with _checked(archive):
            return ""
    except (DamagedStoreError, StoreError, MisuseError) as error:
        return str(error)


def _moved(archive: ArchivedRange, place: "str | os.PathLike[str]") -> ArchivedRange:
    """The archive at this place, if it is there and no longer at its recorded one."""
    folder = str(place).rstrip("/") if is_url(place) else Path(place).resolve()
    there = attrs.evolve(archive, file=f"{folder}/{archive.file.rpartition('/')[2]}")
    is_gone = _problem(archive) if is_url(archive.file) else not Path(archive.file).exists()
    return there if there != archive and is_gone and not _problem(there) else archive


def _in_bucket(url: str) -> tuple[Objects, str]:
    """The place of an archive, and its name there."""
    place, _, name = url.rpartition("/")
    return _reached(place, os.getpid()), name


@lru_cache(maxsize=16)
def _reached(place: str, process: int) -> Objects:
    del process  # a forked child opens it anew, to be told that it cannot
    return Objects.at(place)


@attrs.frozen(eq=False)
class _Download:
    """A copy of an archive in a bucket, in a file without a name, which is gone with the process."""

    handle: int

    def __attrs_post_init__(self) -> None:
        finalize(self, os.close, self.handle)


@lru_cache(maxsize=8)
def _downloaded(archive: ArchivedRange) -> _Download:
    objects, name = _in_bucket(archive.file)
    parts = objects.parts(name)
    if parts is None:
        raise _damaged(archive, "cannot be read (No such object)", MOVED)
    digest = sha256()
    with system_errors(Path(gettempdir())), TemporaryFile() as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.flush()
        if digest.hexdigest() != archive.sha256:
            raise _damaged(archive, "was changed after it was written")
        return _Download(os.dup(file.fileno()))


@lru_cache(maxsize=64)
def _digest(path: str, *_stamp: int) -> str:
    """The hash of a file; cached until its inode, size or time changes."""
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


RESTORE: Final = "restore it from a backup"
MOVED: Final = f"{RESTORE}, or name the place it was moved to: `foldline retain ID --archive PLACE`"


def _damaged(archive: ArchivedRange, what: str, advice: str = RESTORE) -> DamagedStoreError:
    return DamagedStoreError(
        f"archive {archive.file} with versions {archive.first} to {archive.last} {what}; {advice};"
        " events outside of it can still be read"
    )


@cache
def _reader() -> "DuckDBPyConnection":
    """The in-memory database with which a process reads archives; creating one for each read would take 12 ms more.
    It keeps no file open, and caches no content."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "enable_external_file_cache": False})


# A forked child that inherits it would hang at exit.
os.register_at_fork(before=_reader.cache_clear)


@contextmanager
def _errors(file: Path) -> Generator[None]:
    """Raise our errors instead of the database's."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0][:300]
        raise StoreError(f"archive {file}: {reason}; repeat the call") from error


# Removing events from a log, in every store.


STEP: Final = 64
"""Events that are read at a time."""


class HeldTimeline(Protocol):
    """A timeline from which nobody else removes events meanwhile; each change is one commit, or part of one."""

    @property
    def timeline(self) -> TimelineId: ...

    @property
    def head(self) -> Head:
        """With the time of the first event."""
        ...

    @property
    def rest(self) -> Rest:
        """Which part was left before the change."""
        ...

    def rows(self, after: int, last: int) -> Sequence[tuple[int, bytes]]:
        """Versions and payloads of the events after version `after`, up to `last`, wherever they are.

        Raises:
            DamagedStoreError: an event is missing.
        """
        ...

    def chain(self, version: int) -> int:
        """The chain after a version that was not forgotten."""
        ...

    def trim(self, before: int, rest: Rest) -> tuple[int, int]:
        """Remove the rows older than version `before`, so that `rest` is left; return their number and bytes."""
        ...

    def rewrite(self, rest: Rest, events: Mapping[int, StoredEvent]) -> None:
        """Replace the payloads of these versions that are in rows."""
        ...

    def remove(self) -> tuple[int, int]:
        """Remove all rows; return the number of events and their bytes."""
        ...

    def all_rests(self) -> Iterable[Rest]:
        """Which part is left of each timeline from which events were removed, after the change."""
        ...


Change: TypeAlias = Callable[[HeldTimeline], Removed]


def trim(
    held: HeldTimeline, before: int, archive: "str | os.PathLike[str] | None" = None
) -> Removed:
    """Remove or archive the events older than version `before`; note which archives were moved to the place `archive`."""
    checked_trim(held.timeline, before, held.head)
    old, began_at = held.rest, held.head.created_at
    if archive is None:
        rest = old.forgetting(before, began_at)
        if rest.forgotten > old.forgotten:
            rest = attrs.evolve(rest, anchor=held.chain(rest.forgotten))
    else:
        rest = attrs.evolve(old, archives=tuple(_moved(each, archive) for each in old.archives))
        if before <= old.first:
            if rest != old:
                held.rewrite(rest, {})
            return Removed()
        archived = write_archive(archive, held.timeline, _texts(held, old.removed, before - 1))
        rest = rest.archiving(archived, began_at)
    events, size = held.trim(before, rest)
    events = max(events, rest.forgotten - old.forgotten)  # with those that were in archives
    return Removed(events=events, size=size, unused=_unused(held))


def rewrite(held: HeldTimeline, events: Mapping[int, Event]) -> Removed:
    """Replace the events of these versions."""
    new = {version: _replacement(held, version, event) for version, event in events.items()}
    payloads = {version: event.data.decode() for version, event in new.items()}
    held.rewrite(rewritten(held.rest, held.timeline, payloads), new)
    size = sum(len(event.data) for event in new.values())
    return Removed(events=len(new), size=size, unused=_unused(held))


def remove(held: HeldTimeline) -> Removed:
    """Remove the timeline."""
    (events, size), unused = held.remove(), _unused(held)
    events += sum(each.last - each.first + 1 for each in held.rest.archives if each.file in unused)
    return Removed(events=events, size=size, unused=unused)


def _texts(held: HeldTimeline, after: int, last: int) -> Iterator[tuple[int, str]]:
    """Versions and JSON of the events after version `after`, up to `last`; few of them are in memory at a time."""
    for begin in range(after, last, STEP):
        for version, payload in held.rows(begin, min(begin + STEP, last)):
            try:
                yield version, payload.decode()
            except UnicodeDecodeError as error:
                raise damaged(
                    held.timeline, f"event {version} is not valid UTF-8 text ({error})"
                ) from error


def _replacement(held: HeldTimeline, version: int, event: Event) -> StoredEvent:
    if not 1 <= version <= held.head.version:
        raise MisuseError(f"timeline {held.timeline!r} has no version {version}")
    held.rest.refuse_forgotten(held.timeline, version)
    rows = held.rows(version - 1, version)
    if not rows:
        raise damaged(held.timeline, f"event {version} is missing")
    [(_, old)] = events_of(held.timeline, rows)
    return checked_rewrite(version, old, event)


def _unused(held: HeldTimeline) -> tuple[str, ...]:
    """The archive files of the timeline to which no log refers any more."""
    files = dict.fromkeys(archive.file for archive in held.rest.archives)
    for rest in held.all_rests() if files else ():
        for archive in rest.archives:
            files.pop(archive.file, None)
    return tuple(files)
