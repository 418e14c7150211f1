"""Checks whether a store is consistent: every promise about stored bytes, one by one.

A `Verifiable` store checks its own bytes; any other store is read through its protocol.
"""

from collections.abc import Iterator
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from blocks import DamagedStoreError, MisuseError
from persistence._log import event_problems, is_sound
from persistence._open import SCHEMES, locate_store, scheme_of
from persistence._retention import kept_of
from persistence._store import (
    PROBLEMS_MAX,
    EventStore,
    StoreProblem,
    StoreReport,
    TimelineInfo,
    Verifiable,
)
from persistence.archive import archive_problems
from persistence.artifacts import KeyRing, open_artifacts

PAGE: Final = 1_000


def verify(
    target: "EventStore | Verifiable | str | PathLike[str]", *, keys: KeyRing | None = None
) -> StoreReport:
    """Read a whole store, given as an object, a path or a URL, and report what is damaged or inconsistent.

    Checks that versions are gap-free; that every event can be read and agrees with its row; that no block id occurs
    twice in a timeline; that every artifact exists and has its original content; and that nothing acknowledged is
    missing.  Changes nothing.  `target` may also be an artifact store, or the folder or URL of one.
    For encrypted artifacts it checks the size, and with their `keys` also the content.

    Raises:
        StoreLockedError: another process has the file open.
        MisuseError: there is no such file, or it is not a store.
        ClosedError: the store was closed.
    """
    try:
        if isinstance(target, str | PathLike):
            return _verified_at(target, keys)
        if isinstance(target, Verifiable) and not isinstance(target, type):
            return target.verify(keys=keys)
        if isinstance(target, EventStore) and not isinstance(target, type):
            return _scanned(target)
    except DamagedStoreError as damage:
        return StoreReport(problems=(StoreProblem(what=str(damage)),))
    raise MisuseError(f"{target!r:.80} is no store; give one, or the path or URL of one")


def _verified_at(where: "str | PathLike[str]", keys: KeyRing | None) -> StoreReport:
    scheme = scheme_of(where)
    if scheme not in SCHEMES or (not scheme and _is_folder_of_artifacts(where)):
        with open_artifacts(str(where), keys=keys) as artifacts:
            return artifacts.verify()
    return locate_store(where).verify(keys=keys)


def _is_folder_of_artifacts(path: "str | PathLike[str]") -> bool:
    return is_sound(fspath(path)) and all((Path(path) / n).is_dir() for n in ("content", "entries"))


def _scanned(store: EventStore) -> StoreReport:
    """The report on a store that has no `verify` of its own."""
    found = store.list()
    problems = chain.from_iterable(_log_problems(store, info) for info in found)
    return StoreReport(
        timelines=len(found),
        events=sum(info.version for info in found),
        problems=tuple(islice(problems, PROBLEMS_MAX)),
    )


def _log_problems(store: EventStore, info: TimelineInfo) -> Iterator[StoreProblem]:
    kept = kept_of(store, info.id)
    yield from archive_problems(info.id, kept)
    count, blocks = kept.removed, dict[str, int]()
    while page := store.read(info.id, after=count, limit=PAGE):
        for version, event in page:
            count += 1
            if version != count:
                what = f"version {count} is not there, version {version} is in its place"
                yield StoreProblem(timeline=info.id, version=count, what=what)
                return
            for what in event_problems(version, event, blocks):
                yield StoreProblem(timeline=info.id, version=version, what=what)
    if count < info.version:
        what = f"it has {count} events, and should have {info.version}"
        yield StoreProblem(timeline=info.id, what=what)
