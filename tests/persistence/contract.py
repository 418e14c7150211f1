"""What tests of stores write; the contract itself is `persistence.testing`."""

from pathlib import Path
from shutil import copyfile

import pytest

from persistence import EventStore, open_store
from persistence.sql._store import SQLStore
from persistence.testing._events import (
    TURN,
    T,
    U,
    compacted,
    expanded,
    forked,
    many,
    prompt,
    versions,
)

__all__ = [
    "STORES",
    "TURN",
    "T",
    "U",
    "compacted",
    "expanded",
    "forked",
    "many",
    "new_store",
    "prompt",
    "versions",
]

STORES = ("memory", "duckdb", "sqlite", "postgres")
"""Of stores, as parameters of a fixture."""


def new_store(request: pytest.FixtureRequest, folder: Path) -> EventStore:
    """An empty store of the kind that the request names."""
    if request.param == "postgres":
        return open_store(request.getfixturevalue("postgres").new_url())
    if request.param == "memory":
        return open_store("memory:")
    file = folder / f"talks.{request.param}"
    if request.param == "duckdb":
        copyfile(request.getfixturevalue("empty_duckdb"), file)
    return open_store(f"{request.param}:///{file}")


def opened(where: str) -> SQLStore:
    """The store at the URL of one that many processes share."""
    store = open_store(where)
    assert isinstance(store, SQLStore)
    return store
