"""Where a DuckDB store is: a path, as it is or as `duckdb:///path`."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from persistence._place import database_path, path_in, system_errors
from persistence._store import StoreReport
from persistence.duckdb._store import DuckDBStore

if TYPE_CHECKING:
    from persistence.artifacts import KeyRing


@attrs.frozen
class DuckDBLocation:
    """A file, and what DuckDB and we keep beside it."""

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

    def remove(self) -> None:
        for ending in ("", ".wal", ".lock"):
            path = self.path.with_name(self.path.name + ending)
            if path.exists():
                path.unlink()

    def __str__(self) -> str:
        return str(self.path)


def locate(where: "str | PathLike[str]") -> DuckDBLocation:
    """The location of a path, or of a URL that begins with `duckdb://`.

    Raises:
        MisuseError: it is neither.
    """
    return DuckDBLocation(path_in(where, "duckdb"))
