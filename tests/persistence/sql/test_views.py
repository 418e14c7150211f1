"""The views say what those of a DuckDB file say, of any log that a test of those has, and of a real one."""

import json
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from blocks import (
    Action,
    AssistantThinking,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CheckRecord,
    Decision,
    Digest,
    Envelope,
    Event,
    EventId,
    FileChange,
    Hidden,
    OpaqueBlock,
    OpaqueEvent,
    OpenItem,
    Progress,
    Provenance,
    StructuredSummary,
    SummaryReplaced,
    UserPrompt,
)
from persistence import DuckDBStore
from persistence.testing._derived import odd_log
from tests.persistence.contract import T, U, compacted, expanded, forked, many, opened
from tests.persistence.duckdb.test_views import TURN, appended, call, request, result, usage

VIEWS = ("log", "blocks", "compactions", "requests", "tool_usage")


def talk() -> list[Event]:
    return appended(
        UserPrompt(id=BlockId("b1"), turn=TURN, text="\n語 'quoted' \\u0000 spelled out"),
        AssistantThinking(id=BlockId("b2"), turn=TURN, provider={"thinking": "hm"}),
        call("c1", "read"),
        result("c1", "fine"),
        call("c1", "grep"),
        result("c1", "bad", is_error=True),
        call("c2", "grep"),
        result("c2", "odd", envelope=Envelope(outcome="failure")),
        result("c9", "of no call"),
        call("c3", "grep"),
        OpaqueBlock("my.own", {"id": "b5", "turn": "t1", "author": "tool", "text": "own"}),
        OpaqueBlock("my.own", {"id": "b6", "turn": "t1", "parts": "none", "text": ["a", 1]}),
    )


def folds() -> list[Event]:
    base = compacted("c", cut=4)
    digest = Digest(
        actions=(Action(verb="$", target="make"), Action(verb="read", target="a.py")),
        progress=Progress(
            changes=(FileChange(path="a.py"), FileChange(path="b.py")),
            checks=(CheckRecord(command="make", result="failed (2): no rule"),),
        ),
    )
    written = StructuredSummary(
        task="Book it.",
        decisions=(Decision(decision="use K-7", reason="it is open"), Decision(decision="no")),
        open_items=(OpenItem(item="ask Ann", priority="high"),),
        state="Half done.",
    )
    summary = msgspec.structs.replace(base.summary, summary=written, digest=digest, degraded=True)
    second = msgspec.structs.replace(
        base,
        id=EventId("d"),
        start=4,
        cut=6,
        summary=summary,
        trigger="cold",
        tokens_before=1000,
        tokens_after=250,
        provenance=Provenance(source_hash="h", model="", cost_usd=0.25),
    )
    better = msgspec.structs.replace(base.summary, summary=StructuredSummary(state="Better."))
    paid = Provenance(source_hash="h", model="m", cost_usd=0.5)
    upgrade = SummaryReplaced(
        id=EventId("u"), at=3.0, compaction=6, summary=better, provenance=paid
    )
    less = msgspec.structs.replace(upgrade, id=EventId("v"), redacted=True)
    return [*many(5), base, second, expanded("x", 6), upgrade, less, *many(2, first=20)]


def hides() -> list[Event]:
    one = (Hidden(block=BlockId("b1")),)
    moved = BlocksHidden(id=EventId("h"), at=1.0, hidden=one, reason="externalized")
    last = msgspec.structs.replace(
        moved, id=EventId("i"), reason="cleared", tokens_before=900, tokens_after=300
    )
    kept = msgspec.structs.replace(last, id=EventId("j"), hidden=(Hidden(block=BlockId("b2")),))
    back = BlocksRestored(id=EventId("r"), at=2.0, blocks=(BlockId("b9"), BlockId("b1")))
    return [*many(3), moved, last, kept, back]


def requests() -> list[Event]:
    return [
        usage("imported", uncached=7),
        request("r1", 100),
        *many(1),
        usage("u1", uncached=10, cache_read=100, cache_write=8, output=2),
        request("failed", 200),
        request("r2", 300),
        usage("u2", uncached=1),
    ]


LOGS = {"talk": talk, "folds": folds, "hides": hides, "requests": requests, "odd": odd_log}


def plain(value: Any, column: str) -> Any:
    """What two databases say alike, each in its own type."""
    if column in {"payload", "block"}:
        return json.loads(value) if isinstance(value, str) else value
    if column == "key_facts":
        return "\n".join(value) if isinstance(value, list) else value
    if column in {"happened_at", "first_at", "last_at"}:
        return None if value is None else f"{value}"[:19]
    if column in {"degraded", "undone", "answered"}:
        return bool(value)
    return value if value is None or isinstance(value, str) else pytest.approx(float(value))


def said_by(rows: list[tuple[Any, ...]], columns: list[str]) -> list[dict[str, Any]]:
    return [
        {name: plain(value, name) for name, value in zip(columns, row, strict=True)} for row in rows
    ]


def check(where: str, events: list[Event], folder: Path) -> None:
    path = folder / "talks.duckdb"
    with DuckDBStore(path) as known:
        known.append(T, events, expected_version=0)
        known.fork(T, U, forked(T, 3), at=3)
    with opened(where) as store, duckdb.connect(str(path)) as database:
        store.append(T, events, expected_version=0)
        store.fork(T, U, forked(T, 3), at=3)
        for view in VIEWS:
            key = "timeline, tool" if view == "tool_usage" else "timeline, version"
            wanted = database.execute(f"SELECT * FROM {view} ORDER BY {key}")  # noqa: S608 -- constants
            columns = [name for name, *_ in wanted.description]
            named = ", ".join(f'"{name}"' for name in columns)
            query = f"SELECT {named} FROM {view} ORDER BY {key}"  # noqa: S608 -- constants
            with store._database.lent() as connection:
                found = connection.rows(query)
            assert said_by(found, columns) == said_by(wanted.fetchall(), columns), view


@pytest.mark.parametrize("log", LOGS)
def test_the_views_of_every_store_say_the_same(where: str, log: str, tmp_path: Path) -> None:
    check(where, LOGS[log](), tmp_path)


def test_so_do_they_of_a_whole_session(where: str, replayed: Path, tmp_path: Path) -> None:
    with DuckDBStore(replayed) as store:
        [info] = store.list()
        events = [event for _, event in store.read(info.id, limit=10_000)]
        assert len(events) == info.version
    check(where, events, tmp_path)


def test_no_time_text_or_number_spoils_the_views(where: str) -> None:
    absurd: list[Event] = [
        BlockAppended(
            id=EventId("e"),
            at=1e300,
            block=UserPrompt(id=BlockId("b"), turn=TURN, text="nul \0\0 and \\\0 here \\u0000"),
        ),
        OpaqueEvent("RangeCompacted", {"id": "f", "at": 1.0, "start": "x", "cut": 10**40}),
        OpaqueEvent("BlocksHidden", {"id": "g", "at": 1.0, "hidden": 3, "tokens_before": 1e300}),
        OpaqueEvent("BlockAppended", {"id": "h", "at": 1.0, "block": [1]}),
        OpaqueEvent("UsageRecorded", {"id": "i", "at": 1.0, "uncached": "many"}),
    ]
    with opened(where) as store:
        store.append(T, absurd, expected_version=0)
        with store._database.lent() as connection:
            for view in VIEWS:
                connection.rows(f"SELECT * FROM {view}")  # noqa: S608 -- constants
            [(text, at)] = connection.rows("SELECT text, happened_at FROM blocks WHERE version = 1")
    assert at is None
    assert text.replace("\ufffd", "\0") == "nul \0\0 and \\\0 here \\u0000"
