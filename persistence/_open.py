"""Opening a store by a path or a URL.

A URL names the kind of store. At a path, an existing file is what its content says; for a new one, the ending of the
name decides. To add a store, give it a folder with an `EventStore` and a function `locate`, and a row in `SCHEMES`.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Final, cast

from blocks import MisuseError
from persistence._location import StoreLocation
from persistence._place import SHOWN, checked_path, kind_at
from persistence._store import EventStore

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
    found = _SCHEME.match(where) if isinstance(where, str) else None
    return found[0].lower() if found else ""


def _scheme_at(where: "str | PathLike[str]") -> str:
    """The scheme that a path stands for."""
    path = checked_path(where)
    kind = kind_at(path)
    return f"{kind}://" if kind else ENDINGS.get(path.suffix.lower(), "")


def locate_store(where: "str | PathLike[str]") -> StoreLocation:
    """The location that a path or a URL names; this creates nothing.

    Raises:
        MisuseError: it is neither a path nor a URL, or its scheme is unknown.
    """
    scheme = scheme_of(where)
    if scheme not in SCHEMES:  # the error quotes only the scheme: the rest may contain a password
        known = ", ".join(written for _, written in SCHEMES.values())
        raise MisuseError(f"{scheme:.{SHOWN}} is no store that is known here; give one of: {known}")
    module, _ = SCHEMES[scheme or _scheme_at(where)]
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
