"""Events of any size: small rows in the file, and everybody who reads sees the whole event."""

from pathlib import Path

import duckdb
import pytest

from blocks import (
    BlockAppended,
    BlockId,
    CallId,
    DamagedStoreError,
    Event,
    EventId,
    OpaqueEvent,
    TextPart,
    ToolCall,
    ToolResult,
    UserPrompt,
    VersionConflictError,
    encode_event,
)
from persistence import DuckDBStore, MemoryStore, block_at, verify
from persistence.duckdb._tables import LARGE, PIECE, is_stand_in, pieces_of, stand_in
from persistence.duckdb._writer import payload_of
from tests._table import for_each
from tests.persistence.contract import TURN, T, U, forked, many, prompt

SIZES = (100_000, 1_000_000, 5_000_000)
TEXTS = {
    "ascii": "line of text\n",
    "umlauts": "Prüfung äöü ß\n",
    "wide": "語🙂\u2028",
    "escaped": '\\ud800 "quoted" \\ \0 \n',
    "surrogate": "half \ud800 ",
}


def large(name: str, size: int = 100_000, text: str = "line of text\n") -> BlockAppended:
    """An event with a tool's result in it."""
    content = (text * (size // len(text) + 1))[:size]
    block = ToolResult(
        id=BlockId(f"block {name}"),
        turn=TURN,
        call_id=CallId(f"c{name}"),
        parts=(TextPart(text=content),),
    )
    return BlockAppended(id=EventId(name), at=1.0, block=block)


def everything(store: DuckDBStore) -> list[tuple[int, Event]]:
    """The log, page by page."""
    found: list[tuple[int, Event]] = []
    while page := store.read(T, after=len(found)):
        found += page
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("size", SIZES)
def test_what_comes_back_is_what_any_store_gives(store: DuckDBStore, size: int, text: str) -> None:
    events = [prompt("a"), large("b", size, text), prompt("c"), large("d", size // 5, text)]
    memory = MemoryStore()
    for each in (store, memory):
        each.append(T, events, expected_version=0)
    assert everything(store) == list(memory.read(T))
    assert store.load_window(T) == memory.load_window(T)
    assert block_at(store, T, "tc:t1.cb.result") == block_at(memory, T, "tc:t1.cb.result")


@for_each("more", range(-3, 9))
@for_each("letter", ["x", "ü", "語", "🙂"])
def test_no_character_is_cut_in_two(letter: str, more: int) -> None:
    data = encode_event(prompt("x" * (PIECE + more) + letter * LARGE))
    pieces = list(pieces_of(data))
    assert "".join(pieces).encode() == data
    assert all(0 < len(piece.encode()) <= PIECE + 3 for piece in pieces)
    assert f'"pieces":{len(pieces)},' in stand_in(data)


def test_no_row_of_the_file_is_large_and_small_events_are_as_they_were(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [prompt("a"), large("b", 1_000_000)], expected_version=0)
    with duckdb.connect(str(path)) as connection:
        (small,), (stand,) = connection.sql("SELECT payload FROM events ORDER BY seq").fetchall()
        [(longest,)] = connection.sql("SELECT max(strlen(piece)) FROM pieces").fetchall()
    assert small == encode_event(prompt("a")).decode()
    assert is_stand_in(stand)
    assert len(stand) < 500
    assert longest <= PIECE + 3


def test_an_event_that_looks_like_a_stand_in_is_none(store: DuckDBStore) -> None:
    events: list[Event] = [
        OpaqueEvent("Own", {"pieces": 3, "id": "e", "at": 0.0}),
        OpaqueEvent("Own", {"pieces": 3, "id": "f", "at": 0.0, "block": "x" * LARGE}),
        OpaqueEvent("Own", {"pieces": 3, "id": "g", "at": 0.0, "block": {"type": ["x" * LARGE]}}),
    ]
    store.append(T, events, expected_version=0)
    assert [event for _, event in store.read(T)] == events


def test_a_retry_is_known_by_the_ids_of_stand_ins(store: DuckDBStore) -> None:
    events = [large("a"), prompt("b"), large("c")]
    assert store.append(T, events, expected_version=0) == 3
    assert store.append(T, events, expected_version=0) == 3
    with pytest.raises(VersionConflictError):
        store.append(T, [large("other")], expected_version=2)


def test_a_fork_has_pieces_of_its_own(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [large("a"), prompt("b"), large("c")], expected_version=0)
        store.fork(T, U, forked(T, 2), at=2)
        assert list(store.read(U)) == [(1, large("a")), (2, prompt("b")), (3, forked(T, 2))]
        assert verify(store).ok
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM pieces WHERE timeline = 1")
    with DuckDBStore(path) as store:
        assert store.read(U, limit=1) == [(1, large("a"))]


def test_a_large_event_is_known_after_reopening_and_may_follow_others(path: Path) -> None:
    for version in range(4):
        with DuckDBStore(path) as store:
            store.append(T, [large(str(version))], expected_version=version)
    with DuckDBStore(path) as store:
        assert list(store.read(T)) == [(n + 1, large(str(n))) for n in range(4)]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM pieces WHERE seq = 2 AND number = 5",
        "DELETE FROM pieces WHERE seq = 2",
        "UPDATE pieces SET number = 4 WHERE seq = 2 AND number = 5",
        "UPDATE pieces SET piece = '' WHERE seq = 2 AND number = 0",
    ],
    ids=["one is missing", "all are missing", "one is twice", "one is empty"],
)
def test_missing_pieces_are_damage(path: Path, damage: str) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [prompt("a"), large("b"), large("c")], expected_version=0)
    with duckdb.connect(str(path)) as connection:
        connection.execute(damage)
    assert [(p.timeline, p.version) for p in verify(path).problems] == [(T, 2)]
    with DuckDBStore(path) as store:
        assert store.read(T, after=2) == [(3, large("c"))]
        with pytest.raises(DamagedStoreError, match="event 2"):
            store.read(T)
        with pytest.raises(DamagedStoreError, match="event 2"):
            store.load_window(T)


def test_pieces_without_an_event_are_damage(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(2), expected_version=0)
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO pieces VALUES (1, 9, 0, 'x'), (1, 9, 1, 'y')")
    assert [(p.version, p.what) for p in verify(path).problems] == [(9, "2 pieces of no event")]


def test_the_views_have_the_whole_text(path: Path) -> None:
    call = ToolCall(id=BlockId("call"), turn=TURN, call_id=CallId("cb"), name="bash", input={})
    events = [BlockAppended(id=EventId("call"), at=0.0, block=call), large("b", 300_000)]
    with DuckDBStore(path) as store:
        store.append(T, events, expected_version=0)
    with duckdb.connect(str(path), read_only=True) as connection:
        [(kind, id_, payload)] = connection.sql(
            "SELECT kind, id, payload FROM log WHERE version = 2"
        ).fetchall()
        [row] = connection.sql(
            "SELECT type, id, turn, author, length(text) FROM blocks WHERE version = 2"
        ).fetchall()
        [used] = connection.sql("SELECT tool, results, result_chars FROM tool_usage").fetchall()
    assert (kind, id_, payload) == ("BlockAppended", "b", encode_event(events[1]).decode())
    assert row == ("react.tool.result", "block b", "t1", "tool", 300_000)
    assert used == ("bash", 1, 300_000)


def test_a_search_finds_a_word_in_the_middle_of_a_large_text(store: DuckDBStore) -> None:
    text = "x " * 300_000 + "Needle" + " y" * 300_000
    block = UserPrompt(id=BlockId("b"), turn=TURN, text=text)
    hidden = BlockAppended(id=EventId("e"), at=0.0, block=block)
    store.append(T, [large("a"), hidden, large("b")], expected_version=0)
    [hit] = store.search("needle")
    assert (hit.version, "Needle" in hit.snippet) == (2, True)
    assert store.search("needle type:react.tool.result") == []
    assert {hit.path for hit in store.search("line")} == {
        "tc:t1.ca.result",
        "tc:t1.cb.result",
    }


def test_an_append_of_50_megabytes_is_one_commit(store: DuckDBStore) -> None:
    events = [large(str(n), 10_000_000) for n in range(5)]
    store.append(T, events, expected_version=0)
    assert [event for _, event in everything(store)] == events


def test_the_bound_is_where_it_is_said_to_be() -> None:
    frame = len(encode_event(large("a", 1, "x"))) - 1
    for size in (LARGE, LARGE + 1):
        data = encode_event(large("a", size - frame, "x"))
        assert len(data) == size
        assert is_stand_in(payload_of(data)) == (size > LARGE)
