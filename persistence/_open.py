"""Opening a store by a path or a URL.

A URL names the kind of store. At a path, an existing file is what its content says; for a new one, the ending of the
name decides. To add a store, give it a folder with an `EventStore` and a function `locate`, and a row in `SCHEMES`.
"""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from os import PathLike, register_at_fork
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar, cast
from weakref import WeakSet

import attrs

from blocks import MisuseError, StoreLockedError
from persistence._file import SHOWN, checked_path, kind_at
from persistence._store import EventStore, StoreLocation

SCHEMES: Final[Mapping[str, tuple[str, str]]] = {
    "": ("persistence.duckdb._store", "a path"),
    "duckdb://": ("persistence.duckdb._store", "duckdb:///path"),
    "sqlite://": ("persistence.sqlite._store", "sqlite:///path"),
    "postgresql://": ("persistence.postgres._store", "postgresql://user@host/database"),
    "postgres://": ("persistence.postgres._store", "postgres://user@host/database"),
    "memory:": ("persistence._memory", "memory:"),
}
"""By scheme (a path has none): the module with `locate` for this scheme, and an example."""
ENDINGS: Final[Mapping[str, str]] = dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite://")
"""The scheme that the ending of a new file's name stands for; any other name stands for DuckDB."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|memory:\Z")


def scheme_of(where: object) -> str:
    """The scheme of a URL, as in `SCHEMES`; empty for everything else."""
    scheme = _SCHEME.match(where) if isinstance(where, str) else None
    return scheme[0].lower() if scheme else ""


def locate_store(where: "str | PathLike[str]") -> StoreLocation:
    """The location that a path or a URL names; this creates nothing.

    Raises:
        MisuseError: it is neither a path nor a URL, or its scheme is unknown.
    """
    scheme = scheme_of(where)
    if scheme not in SCHEMES:  # the error quotes only the scheme: the rest may contain a password
        examples = ", ".join(example for _, example in SCHEMES.values())
        raise MisuseError(
            f"{scheme:.{SHOWN}} is not a known kind of store; give one of: {examples}"
        )
    if not scheme:
        path = checked_path(where)
        kind = kind_at(path)
        scheme = f"{kind}://" if kind else ENDINGS.get(path.suffix.lower(), "")
    module, _ = SCHEMES[scheme]
    return cast("StoreLocation", import_module(module).locate(where))


def open_store(where: "str | PathLike[str]") -> EventStore:
    """Open the store at a path or a URL, and create it if it does not exist: `agent.duckdb`, `agent.sqlite`,
    `duckdb:///agent.duckdb`, `sqlite:///agent.sqlite`, `postgresql://user@host/database`, or `memory:` for a new
    store in memory. The caller must close the store.

    A file at a path is opened as what it is, DuckDB or SQLite; a new one is SQLite if its name ends in `.sqlite`,
    `.sqlite3` or `.db`, and DuckDB otherwise. The part after `duckdb:///` or `sqlite:///` is the path, so an absolute
    path gives four slashes.

    Raises:
        MisuseError: it is neither a path nor a URL, its scheme is unknown, or no store can be there.
        StoreLockedError: another process has it open.
        DamagedStoreError: it is damaged, or acknowledged events are missing.
        StoreError: the operating system denies access.
    """
    return locate_store(where).open()


# Sharing a store that can be open only once in a process.


@attrs.frozen(eq=False)
class Share:
    """The right of one user to an open store; the last one to close its share closes the store."""

    store: EventStore

    def close(self) -> None:
        """Idempotent."""
        with _sharing:  # so that nobody opens the file while it is being closed
            _shares.discard(self)
            if all(other.store is not self.store for other in list(_shares)):
                self.store.close()


def share_store(where: "str | PathLike[str]") -> tuple[EventStore, EventStore | Share]:
    """The store at a path or a URL as `open_store` opens it, and what its user must close: for a DuckDB file, of which
    a process can have only one store, a share of the store that all callers of this function get.

    Raises:
        MisuseError, StoreLockedError, DamagedStoreError, StoreError: as `open_store`.
    """
    place = locate_store(where)
    if not place.opens_once:
        store = place.open()
        return store, store
    with _sharing:
        others = (share.store for share in list(_shares))
        shared = next((store for store in others if place.is_open_as(store)), None)
        share = Share(shared or place.open())
        _shares.add(share)
        return share.store, share


_shares: Final = WeakSet[Share]()
"""Weak: a share that was dropped without `close` keeps nothing open."""
_sharing = RLock()
"""Reentrant, because the garbage collector may run inside it and close another share."""


def _after_fork() -> None:
    """Let a forked child open its own stores: those of its parent are closed to it."""
    global _sharing  # noqa: PLW0603 -- another thread of the parent may have held it
    _sharing = RLock()
    _shares.clear()


register_at_fork(after_in_child=_after_fork)


# Reading a store that another process has open, or that cannot be written to.


_Result = TypeVar("_Result")


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
    place: StoreLocation, use: Callable[[StoreLocation], _Result]
) -> Generator[tuple[_Result, bool]]:
    """The result of `use` on a store or, if the store is not free, on a copy that exists until the end."""
    from tempfile import TemporaryDirectory  # here, because it takes long to import

    with TemporaryDirectory(prefix="foldline-", ignore_cleanup_errors=True) as folder:
        yield _result_of(place, use, Path(folder))


def _result_of(
    place: StoreLocation, use: Callable[[StoreLocation], _Result], folder: Path
) -> tuple[_Result, bool]:
    if place.is_writable():
        with suppress(StoreLockedError):
            return use(place), False
    return use(place.moment(folder)), True
