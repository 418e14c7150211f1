"""The SQL views answer a person's questions, from the closed file, with nothing but DuckDB."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from blocks import (
    Action,
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CallId,
    CheckRecord,
    Decision,
    Digest,
    Envelope,
    Event,
    EventId,
    FileChange,
    Hidden,
    OpaqueBlock,
    OpenItem,
    Progress,
    Provenance,
    RangeCompacted,
    RequestRendered,
    StructuredSummary,
    SummaryReplaced,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UsageRecorded,
    UserPrompt,
    Work,
)
from persistence import DuckDBStore
from tests.persistence.contract import T, compacted, expanded, many

TURN = TurnId("t1")


def appended(*blocks: Block) -> list[Event]:
    return [
        BlockAppended(id=EventId(f"e{n}"), at=1_700_000_000.5 + n, block=block)
        for n, block in enumerate(blocks)
    ]


def call(name: str, tool: str) -> ToolCall:
    return ToolCall(
        id=BlockId(f"call {name}"),
        turn=TURN,
        call_id=CallId(name),
        name=tool,
        input={"path": "a.py"},
    )


def result(name: str, text: str, **more: Any) -> ToolResult:
    return ToolResult(
        id=BlockId(f"result {name} {text}"),
        turn=TURN,
        call_id=CallId(name),
        parts=(TextPart(text=text), TextPart(text="end")),
        **more,
    )


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Any]:
    """Stores the events, closes the store, and asks the file."""
    path = tmp_path / "talks.duckdb"
    connections: list[duckdb.DuckDBPyConnection] = []

    def ask(events: list[Event], query: str) -> list[tuple[Any, ...]]:
        with DuckDBStore(path) as store:
            store.append(T, events, expected_version=0)
        connections.append(duckdb.connect(str(path)))
        return connections[-1].execute(query).fetchall()

    yield ask
    for connection in connections:
        connection.close()


def test_blocks_show_author_and_text_of_every_kind(ask: Any) -> None:
    events = appended(
        UserPrompt(id=BlockId("b1"), turn=TURN, text="nul \0 and 語"),
        AssistantThinking(id=BlockId("b2"), turn=TURN, provider={"thinking": "hm"}),
        call("c1", "read"),
        result("c1", "content"),
        OpaqueBlock("my.own", {"id": "b5", "turn": "t1", "author": "tool", "text": "own"}),
    )
    rows = ask(events, "SELECT version, type, author, text FROM blocks ORDER BY version")
    assert rows == [
        (1, "user.prompt", "user", "nul \0 and 語"),
        (2, "assistant.thinking", "assistant", "hm"),
        (3, "react.tool.call", "assistant", 'read\n{"path":"a.py"}'),
        (4, "react.tool.result", "tool", "content\nend"),
        (5, "my.own", "tool", "own"),
    ]


def test_blocks_know_their_timeline_turn_and_time(ask: Any) -> None:
    query = "SELECT timeline, id, turn, epoch(happened_at) FROM blocks"
    assert ask(appended(UserPrompt(id=BlockId("b1"), turn=TURN, text="x")), query) == [
        (T, "b1", "t1", 1_700_000_000.5)
    ]


def test_an_absurd_time_does_not_spoil_the_views(ask: Any) -> None:
    events: list[Event] = [
        BlockAppended(
            id=EventId("e"), at=1e300, block=UserPrompt(id=BlockId("b"), turn=TURN, text="x")
        )
    ]
    assert ask(events, "SELECT id, happened_at FROM blocks") == [("b", None)]


def test_compactions_show_range_gain_cost_and_facts(ask: Any) -> None:
    plain = compacted("c", cut=4)
    full = RangeCompacted(
        id=EventId("d"),
        at=2.0,
        start=4,
        cut=6,
        summary=plain.summary,
        trigger="cold",
        tokens_before=1000,
        tokens_after=250,
        provenance=Provenance(source_hash="h", model="m", cost_usd=0.25),
    )
    rows = ask(
        [*many(5), plain, full, expanded("x", 6)],
        """SELECT version, start, cut, blocks, trigger, tokens_before, tokens_after, ratio, cost_usd,
                  model, degraded, key_facts, undone FROM compactions ORDER BY version""",
    )
    facts = ["one", "two"]
    assert rows == [
        (6, 1, 4, 3, "proactive", 0, 0, None, 0.0, "", False, facts, True),
        (7, 4, 6, 2, "cold", 1000, 250, 0.25, 0.25, "m", False, facts, False),
    ]


def test_compactions_are_numbered_and_say_what_was_written(ask: Any) -> None:
    written = StructuredSummary(
        task="Book it.",
        decisions=(Decision(decision="use K-7", reason="it is open"),),
        open_items=(OpenItem(item="ask Ann", priority="high"),),
        state="Half done.",
    )
    base = compacted("c", cut=4)
    summary = msgspec.structs.replace(base.summary, summary=written)
    rows = ask(
        [*many(5), base, msgspec.structs.replace(base, id=EventId("d"), summary=summary)],
        "SELECT version, checkpoint, summary, key_facts FROM compactions ORDER BY version",
    )
    assert [row[:2] for row in rows] == [(6, 1), (7, 2)]
    assert rows[0][2] == "## Original task\nthe task\n\n## Facts\n- one\n- two"
    assert rows[1][2] == (
        "## Original task\nBook it.\n\n## Decisions\n- use K-7: it is open\n\n"
        "## Current state\nHalf done.\n\n## Open items\n- high: ask Ann"
    )
    assert rows[1][3] == ["use K-7"]


def test_without_a_model_the_key_facts_are_what_was_found_and_done(ask: Any) -> None:
    found = Work(component="t1", action="found", description="The cause is a missing index.")
    digest = Digest(
        actions=(Action(verb="$", target="make"),),
        progress=Progress(
            changes=(FileChange(path="a.py"),),
            checks=(CheckRecord(command="make", result="failed (2): no rule"),),
        ),
    )
    base = compacted("c", cut=4)
    told = StructuredSummary(completed=(found,))
    summary = msgspec.structs.replace(base.summary, summary=told, digest=digest)
    bare = msgspec.structs.replace(base, summary=summary)
    [(facts,)] = ask([*many(5), bare], "SELECT key_facts FROM compactions")
    assert facts == [
        "found The cause is a missing index.",
        *("wrote a.py", "did $ make", "checked make: failed (2): no rule"),
    ]


def test_a_compaction_that_folded_nothing_is_one_too(ask: Any) -> None:
    moved = BlocksHidden(
        id=EventId("h"), at=1.0, hidden=(Hidden(block=BlockId("b1")),), reason="externalized"
    )
    last = msgspec.structs.replace(
        moved, id=EventId("i"), reason="cleared", tokens_before=900, tokens_after=300
    )
    back = BlocksRestored(id=EventId("r"), at=2.0, blocks=(BlockId("b1"),))
    query = (
        "SELECT version, cut, blocks, tokens_before, tokens_after, summary, undone FROM compactions"
    )
    assert ask([*many(3), moved, last, back], query) == [(5, None, 1, 900, 300, "", True)]


def test_an_upgraded_summary_is_the_one_that_is_shown_and_paid_for(ask: Any) -> None:
    base = compacted("c", cut=4)
    paid = Provenance(source_hash="h", model="m", cost_usd=0.5)
    better = msgspec.structs.replace(base.summary, summary=StructuredSummary(state="Better."))
    upgrade = SummaryReplaced(
        id=EventId("u"), at=3.0, compaction=6, summary=better, provenance=paid
    )
    less = msgspec.structs.replace(
        upgrade,
        id=EventId("v"),
        summary=msgspec.structs.replace(base.summary, summary=StructuredSummary(state="[…]")),
        redacted=True,
    )
    query = "SELECT summary, model, cost_usd, key_facts FROM compactions"
    shown = ask([*many(5), base, upgrade, less], query)
    assert shown == [("## Current state\n[…]", "m", 0.5, [])], "redacting costs nothing"


def test_a_file_with_the_views_of_an_earlier_version_gets_ours(ask: Any, tmp_path: Path) -> None:
    ask([*many(5), compacted("c", cut=4)], "SELECT 1")
    path = tmp_path / "older.duckdb"
    path.write_bytes((tmp_path / "talks.duckdb").read_bytes())
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE OR REPLACE VIEW compactions AS SELECT 1 AS version")
        connection.execute("COMMENT ON VIEW quality IS NULL")
    with DuckDBStore(path) as store:
        assert store.head(T) == 6
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute("SELECT version, checkpoint FROM compactions").fetchall()
    assert rows == [(6, 1)]


def request(name: str, tokens: int) -> RequestRendered:
    return RequestRendered(
        id=EventId(name), at=1.0, content_hash=name, tokens=tokens, cache_points=(1, 2)
    )


def usage(name: str, **numbers: Any) -> UsageRecorded:
    return UsageRecorded(id=EventId(name), at=2.0, model="m", **numbers)


def test_requests_are_paired_with_what_they_cost(ask: Any) -> None:
    events: list[Event] = [
        usage("imported", uncached=7),
        request("r1", 100),
        *many(1),
        usage("u1", uncached=10, cache_read=100, cache_write=8, output=2),
        request("failed", 200),
        request("r2", 300),
        usage("u2", uncached=1),
    ]
    rows = ask(
        events,
        """SELECT version, content_hash, tokens_estimated, cache_points, answered, tokens,
                  cache_read, cache_write, output, cost FROM requests ORDER BY version""",
    )
    assert rows == [
        (1, None, None, 0, True, 7, 0, 0, 0, 7.0),
        (2, "r1", 100, 2, True, 118, 100, 8, 2, 10 + 10 + 10 + 10.0),
        (5, "failed", 200, 2, False, 0, 0, 0, 0, 0.0),
        (6, "r2", 300, 2, True, 1, 0, 0, 0, 1.0),
    ]


def test_tool_usage_counts_calls_and_failures_even_when_call_ids_repeat(ask: Any) -> None:
    events = appended(
        call("c1", "read"),
        result("c1", "fine"),
        call("c1", "grep"),
        result("c1", "bad", is_error=True),
        call("c2", "grep"),
        result("c2", "odd", envelope=Envelope(outcome="failure")),
        call("c3", "grep"),
    )
    rows = ask(
        events,
        """SELECT timeline, tool, calls, results, failures, result_chars
           FROM tool_usage ORDER BY tool""",
    )
    assert rows == [(T, "grep", 3, 2, 2, 14), (T, "read", 1, 1, 0, 8)]
