"""Looks at a store that is not free: others have it open, or nothing can be written where it is."""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from blocks import StoreLockedError
from persistence._location import StoreLocation
from persistence._open import locate_store
from persistence._store import EventStore

_Made = TypeVar("_Made")


@contextmanager
def look(where: "StoreLocation | str | PathLike[str]") -> Generator[tuple[EventStore, bool]]:
    """The store `where`, to read from, and whether it is a copy of what the store holds at this moment.

    It is one where another process has the DuckDB file open, and where a file or its folder cannot be written
    to. What is written to a copy is lost.

    Raises:
        StoreLockedError: this process has it open: share that store.
        StoreError: the system does not let us read it.
        DamagedStoreError: it does not hold together.
        MisuseError: it cannot be a store.
    """
    place = locate_store(where) if isinstance(where, str | PathLike) else where
    with looking(place, lambda free: free.open()) as (store, is_copy), closing(store):
        yield store, is_copy


@contextmanager
def looking(
    place: StoreLocation, use: Callable[[StoreLocation], _Made]
) -> Generator[tuple[_Made, bool]]:
    """What `use` makes of a store or, where it is not free, of a copy, which is there until the end."""
    with TemporaryDirectory(prefix="foldline-", ignore_cleanup_errors=True) as folder:
        yield _used(place, use, Path(folder))


def _used(
    place: StoreLocation, use: Callable[[StoreLocation], _Made], folder: Path
) -> tuple[_Made, bool]:
    if place.is_writable():
        try:
            return use(place), False
        except StoreLockedError:
            return use(place.moment(folder)), True
    return use(place.moment(folder)), True
