"""Reading a store that another process has open, or that cannot be written to."""

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
    """The store at `where`, to read from, and whether it is a temporary copy of the store as it is now.

    It is a copy if another process has the DuckDB file open, or if the file or its folder cannot be written
    to. Anything written to a copy is lost.

    Raises:
        StoreLockedError: this process has it open; share that store object.
        StoreError: the operating system denies reading.
        DamagedStoreError: it is damaged.
        MisuseError: it is not a store.
    """
    place = locate_store(where) if isinstance(where, str | PathLike) else where
    with looking(place, lambda free: free.open()) as (store, is_copy), closing(store):
        yield store, is_copy


@contextmanager
def looking(
    place: StoreLocation, use: Callable[[StoreLocation], _Made]
) -> Generator[tuple[_Made, bool]]:
    """The result of `use` on a store or, if the store is not free, on a copy that exists until the end."""
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
