"""The location of a DuckDB store: a plain path, or `duckdb:///path`."""

import glob
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from persistence._file import copy_of_a_moment, database_path, is_writable, path_in, system_errors
from persistence._store import StoreReport
from persistence.duckdb._file_lock import refuse_if_ours
from persistence.duckdb._store import DuckDBStore

if TYPE_CHECKING:
    from persistence.artifacts import KeyRing


@attrs.frozen
class DuckDBLocation:
    """A DuckDB file, with its write-ahead log and its lock file."""

    path: Path

    def exists(self) -> bool:
        with system_errors(self.path):
            return self.path.exists()

    def open(self) -> DuckDBStore:
        return DuckDBStore(self.path)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        from persistence.duckdb._verify import verify_file

        return verify_file(database_path(self.path), keys)

    def readable_copy(self, folder: Path) -> "tuple[DuckDBLocation, str]":
        from persistence.duckdb._repair import readable_copy

        copy, cut = readable_copy(database_path(self.path), folder)
        return DuckDBLocation(copy), cut

    def is_writable(self) -> bool:
        return is_writable(database_path(self.path))

    def moment(self, folder: Path) -> "DuckDBLocation":
        path = database_path(self.path)
        refuse_if_ours(path)
        # In this order, so that the copied log has all events that the copied lock file counts as acknowledged, and
        # the copied database has all that the copied log refers to.
        copy = copy_of_a_moment(path, (".lock", ".wal", ""), folder, _folded)
        return DuckDBLocation(copy)

    def remove(self) -> None:
        for ending in ("", ".wal", ".lock"):
            path = self.path.with_name(self.path.name + ending)
            if path.exists():
                path.unlink()

    def __str__(self) -> str:
        return str(self.path)


HEADERS: Final = 3 * 4096
"""Bytes at the start of a DuckDB file that contain its headers; these say which blocks are in use."""


def _folded(path: Path) -> tuple[bytes, list[str]]:
    """The headers, which a checkpoint writes last; and the names of logs that exist only during a checkpoint."""
    with path.open("rb") as file:
        start = file.read(HEADERS)
    others = path.parent.glob(f"{glob.escape(path.name)}.*wal*")
    return start, sorted(other.name for other in others if other.name != f"{path.name}.wal")


def locate(where: "str | PathLike[str]") -> DuckDBLocation:
    """The location of a path or of a `duckdb://` URL.

    Raises:
        MisuseError: it names no path.
    """
    return DuckDBLocation(path_in(where, "duckdb"))
