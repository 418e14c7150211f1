"""A file of an empty store, which is made once: to make the tables and views takes longer than most tests."""

from pathlib import Path

import pytest

from persistence import DuckDBStore


@pytest.fixture(scope="session")
def empty_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a DuckDB store to which nothing was appended, closed; to be copied."""
    path = tmp_path_factory.mktemp("empty") / "talks.duckdb"
    DuckDBStore(path).close()
    return path
