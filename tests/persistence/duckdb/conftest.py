"""Where a DuckDB store may be, and one that is empty."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import pytest

from persistence import DuckDBStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.duckdb"


@pytest.fixture
def store(path: Path, empty_duckdb: Path) -> Iterator[DuckDBStore]:
    with DuckDBStore(copyfile(empty_duckdb, path)) as store:
        yield store
