"""Every store finds the block that came from a foreign message."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from blocks import Block, BlockAppended, EventId, TimelineId
from persistence import EventStore, MemoryStore, open_store, source_at
from tests._builders import prompt, said

T = TimelineId("talk")


@pytest.fixture(params=["memory", "sqlite", "duckdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EventStore:
    match request.param:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return open_store(f"sqlite:///{tmp_path / 'a.sqlite'}")
        case _:
            return open_store(tmp_path / "a.duckdb")


def test_a_block_is_found_by_where_it_came_from(store: EventStore) -> None:
    blocks: list[Block] = [
        replace(prompt("m3 is no source here"), source="m1"),
        said("b", response="msg_ÄÖ\"'%_\\1"),
        replace(said("c"), source="M1"),
        replace(said("d"), source="m1"),
    ]
    events = [BlockAppended(id=EventId(str(n)), at=float(n), block=b) for n, b in enumerate(blocks)]
    store.append(T, events, expected_version=0)
    found = [source_at(store, T, name) for name in ("m1", "M1", "msg_ÄÖ\"'%_\\1", "m3", "m")]
    assert found == [4, 3, 2, 0, 0]
    assert source_at(store, TimelineId("other"), "m1") == 0
    store.close()
