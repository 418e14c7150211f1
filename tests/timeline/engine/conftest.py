"""Some tests of the engine take each kind of store, and some talk to the fake provider, on a loopback port."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from persistence import MemoryStore, open_store
from tests._practice import practice

__all__ = ["practice"]

HERE = Path(__file__).parent


@pytest.fixture(params=["memory", "duckdb", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A new store of each kind that can remove events."""
    match request.param:
        case "memory":
            made: Any = MemoryStore()
        case "postgres":
            made = open_store(request.getfixturevalue("url"))
        case kind:
            made = open_store(f"{kind}:///{tmp_path}/a.{kind}")
    with closing(made):
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow loopback sockets to those that take servers."""
    for item in items:
        if HERE in item.path.parents and "practice" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.network)
