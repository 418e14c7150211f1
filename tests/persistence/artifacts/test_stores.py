"""Every artifact store keeps the contract."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blocks import MisuseError, Sensitivity
from persistence import PostgresStore, Requester

from .contract import ArtifactContract, MemoryContract
from .places import (
    ALICE,
    SENSITIVITIES,
    AsObjects,
    InDuckDB,
    InMemory,
    InSQL,
    Place,
    about,
    in_folder,
    in_sqlite,
)


class TestInMemory(ArtifactContract):
    @pytest.fixture
    def place(self) -> Place:
        return InMemory()


class TestInDuckDB(ArtifactContract, MemoryContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return InDuckDB(tmp_path / "talks.duckdb")


class TestInSQLite(ArtifactContract, MemoryContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return in_sqlite(tmp_path)


class TestInPostgres(ArtifactContract, MemoryContract):
    @pytest.fixture
    def place(self, url: str) -> Place:
        return InSQL(lambda: PostgresStore(url))


class TestInFolder(ArtifactContract, MemoryContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return in_folder(tmp_path / "artifacts")


class TestAsObjects(ArtifactContract):
    @pytest.fixture
    def place(self) -> Place:
        return AsObjects()


PLACES: dict[str, Callable[[Path], Place]] = {
    "memory": lambda _: InMemory(),
    "duckdb": lambda path: InDuckDB(path / "talks.duckdb"),
    "sqlite": in_sqlite,
    "folder": lambda path: in_folder(path / "artifacts"),
    "objects": lambda _: AsObjects(),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](tmp_path)


CONTENTS = st.lists(
    st.tuples(
        st.binary(max_size=300),
        st.sampled_from(SENSITIVITIES),
        st.integers(0, 400),
        st.none() | st.integers(0, 400),
    ),
    max_size=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(contents=CONTENTS)
def test_any_bytes_come_back_and_a_range_is_a_slice(
    place: Place, contents: list[tuple[bytes, Sensitivity, int, int | None]]
) -> None:
    store = place.open()
    for content, sensitivity, start, size in contents:
        artifact = store.put(content, about(sensitivity))
        stop = None if size is None else start + size
        assert store.read(artifact, ALICE) == content
        assert store.read(artifact, ALICE, start=start, size=size) == content[start:stop]
    place.close()


def test_permissions_are_a_set_and_not_a_text() -> None:
    """A text is a set of its letters, which would open nothing and say nothing."""
    assert Requester("me", permissions=["read"]).permissions == frozenset({"read"})
    with pytest.raises(MisuseError, match="expected a set"):
        Requester("me", permissions="read")
