"""Replaying an invented session: what is counted, priced, dumped and kept."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import msgspec
import pytest

from blocks import (
    BlockAppended,
    BlockId,
    CallId,
    Digest,
    Event,
    EventId,
    MisuseError,
    Note,
    RangeCompacted,
    RangeSummary,
    Recorded,
    StoreLockedError,
    StructuredSummary,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
    window_of,
)
from persistence import DuckDBStore, MemoryStore
from persistence.sessions import Responded, read_session
from render import (
    PROVIDERS,
    Model,
    Policy,
    Provider,
    View,
    open_view,
    provider_of,
    validate_request,
)
from tests._sizes import sized
from tests._table import for_each
from tests.render.providers.plain import LONG, plain_text
from tests.timeline.replay.invented import START, invented
from timeline import Timeline
from timeline._models import model_named
from timeline.billing import Flattener, PromptCache, SummaryCall, price
from timeline.billing._prices import ordinary_rates, summary_cost, summary_price
from timeline.engine._engine import counted
from timeline.replay import (
    DumpRecord,
    ReplayOptions,
    ReplayResult,
    dump_to,
    places,
    replay,
    telling_window,
)
from timeline.replay._coverage import coverage
from timeline.replay._options import SYSTEM
from timeline.replay._replay import EVERYTHING, ROOM_TOKENS_MIN, Clock, Replay
from timeline.tokens import counter_for

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "invoice-service.jsonl"
SMALL = ReplayOptions(window=3_000, counter="estimate")


@pytest.fixture(scope="module")
def result() -> ReplayResult:
    return replay(invented(), SMALL)


def dumped(path: Path, options: ReplayOptions = SMALL) -> list[dict[str, Any]]:
    with dump_to(path) as dump:
        replay(invented(), options, dump=dump)
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_it_counts_what_the_session_has(result: ReplayResult) -> None:
    assert (result.calls, result.turns, result.rounds) == (24, 4, 24)
    assert (result.tool_calls, result.tool_results) == (20, 20)
    assert result.blocks == 4 * 2 + 4 * 5 * 4 + 4


def test_a_small_window_is_kept_by_compaction(result: ReplayResult) -> None:
    assert result.compactions
    assert result.tokens_max <= result.window
    assert not result.over_window_calls
    assert result.cost.total < result.cost.full_history


def test_every_promise_is_kept(result: ReplayResult) -> None:
    assert result.problems == ()
    assert result.reopened_equal
    assert result.coverage.folded
    assert result.coverage.blocks == result.blocks


def test_a_point_for_every_call_tells_what_happened(result: ReplayResult) -> None:
    assert [point.call for point in result.points] == list(range(24))
    assert sum("compacted" in point.events for point in result.points) == result.folds
    assert result.folds <= result.compactions
    assert all(point.full_tokens >= 0 for point in result.points)
    assert result.points[-1].full_tokens > 2 * result.points[-1].tokens


def test_a_large_window_sends_everything_at_the_price_of_everything() -> None:
    result = replay(invented(), ReplayOptions(counter="o200k"))
    assert not result.compactions
    assert result.units.ratio == pytest.approx(1, abs=0.3)  # pruning at cold moments saves some


def test_the_result_is_the_contract_in_json(result: ReplayResult) -> None:
    data = result.to_json()
    assert json.loads(json.dumps(data)) == data
    assert data["cache"].keys() == {"read", "write", "uncached"}
    assert data["cost"].keys() == {"prompt", "summaries", "total", "full_history"}
    assert data["ms_per_call"].keys() == {"p50", "p99", "max"}
    wanted = "session format model window policy calls blocks events turns rounds tool_calls"
    wanted += " tool_results compactions prunes split_turns tokens_max tokens_mean"
    wanted += " over_window_calls validity_violations store_bytes warm_busts clips notices"
    assert set(wanted.split()) <= data.keys()
    assert "points" not in data


def test_the_dump_has_one_line_a_call_in_the_order_of_the_contract(tmp_path: Path) -> None:
    lines = dumped(tmp_path / "dump.jsonl")
    assert [line["call"] for line in lines] == list(range(24))
    fields = ["call", "ts", "request", "summaries", "tokens", "ms"]
    assert all(list(line) == fields for line in lines)
    calls = [item for item in invented().items if isinstance(item, Responded)]
    assert [line["ts"] for line in lines] == [call.at for call in calls]
    assert lines[0]["ts"] == START + 1_001


def test_every_dumped_request_is_valid_and_marked(tmp_path: Path) -> None:
    for line in dumped(tmp_path / "dump.jsonl"):
        request = line["request"]
        assert not validate_request(request, model_named("claude-sonnet-5-5"))
        assert line["tokens"] <= 3_000
        assert json.dumps(request).count("cache_control") <= 4
    assert "cache_control" in json.dumps(request)


def test_two_replays_differ_in_nothing_but_time(tmp_path: Path) -> None:
    first, second = dumped(tmp_path / "a.jsonl"), dumped(tmp_path / "b.jsonl")
    for line in (*first, *second):
        line.pop("ms")
    assert first == second


def test_the_bill_is_that_of_the_dumped_requests(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    with dump_to(path) as dump:
        result = replay(invented(), SMALL, dump=dump)
    model = model_named("claude-sonnet-5-5")
    cache = PromptCache.of(model)
    flattener = Flattener(counter_for("estimate", model), provider_of(model))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    steps = [cache.step(line["ts"], flattener.sent(line["request"])) for line in lines]
    assert sum(step.read for step in steps) == result.cache.read
    assert sum(step.uncached for step in steps) == result.cache.uncached
    assert [step.total for step in steps] == [line["tokens"] for line in lines]


def test_a_failed_dump_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text("before")
    with pytest.raises(MisuseError), dump_to(path) as dump:
        replay(invented(turns=1), ReplayOptions(window=20), dump=dump)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_logs_without_system_and_tools_get_short_ones(tmp_path: Path) -> None:
    request = dumped(tmp_path / "dump.jsonl")[0]["request"]
    assert [block["text"] for block in request["system"]] == [SYSTEM]
    assert [tool["name"] for tool in request["tools"]] == ["bash", "read_file"]
    assert {tool["input_schema"]["type"] for tool in request["tools"]} == {"object"}


def test_what_the_log_has_wins_over_the_default_and_an_option_over_both(tmp_path: Path) -> None:
    tool = {"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}
    session = invented(turns=1, system="As logged.", tools=(tool,))
    for options, expected in (
        (SMALL, "As logged."),
        (attrs.evolve(SMALL, system="Mine."), "Mine."),
    ):
        path = tmp_path / "dump.jsonl"
        with dump_to(path) as dump:
            replay(session, options, dump=dump)
        request = json.loads(path.read_bytes().splitlines()[0])["request"]
        assert request["system"][0]["text"] == expected
        assert request["tools"] == [tool]


def test_the_sessions_model_counts_when_its_prices_are_known() -> None:
    assert replay(invented(turns=1, model="claude-haiku-4-5")).model == "claude-haiku-4-5"
    assert replay(invented(turns=1, model="")).model == "claude-sonnet-5-5"
    chosen = ReplayOptions(model="claude-opus-4-5")
    assert replay(invented(turns=1, model="claude-haiku-4-5"), chosen).model == "claude-opus-4-5"


def test_thinking_is_sent_back_unless_dropped(tmp_path: Path) -> None:
    wide = ReplayOptions(counter="estimate")
    kept = json.dumps(dumped(tmp_path / "a", wide))
    left = json.dumps(dumped(tmp_path / "b", attrs.evolve(wide, keep_thinking=False)))
    assert '"thinking"' in kept
    assert '"thinking"' not in left


def test_the_extractive_summariser_makes_no_model_calls(tmp_path: Path) -> None:
    assert not any(line["summaries"] for line in dumped(tmp_path / "dump.jsonl"))


def test_a_stand_in_prices_the_calls_that_a_model_would_have_had(tmp_path: Path) -> None:
    options = attrs.evolve(SMALL, summarizer="stand-in")
    path = tmp_path / "dump.jsonl"
    with dump_to(path) as dump:
        result = replay(invented(), options, dump=dump)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    calls = [(index, call) for index, line in enumerate(lines) for call in line["summaries"]]
    assert len(calls) >= result.compactions > 0
    for index, call in calls:
        asked = call["input_tokens"] - lines[index - 1]["tokens"]
        assert 500 < asked < 4_000, "what the instruction of a model's update takes"
        is_warm = lines[index]["ts"] - lines[index - 1]["ts"] < 300
        assert bool(call["cached_prefix_tokens"]) == is_warm
        assert 0 < call["output_tokens"] <= 2_500
    assert result.cost.total == result.cost.prompt + result.cost.summaries > result.cost.prompt


def test_a_window_that_cannot_hold_system_and_tools_is_refused() -> None:
    with pytest.raises(MisuseError, match="window 20: the system prompt and the tools alone need"):
        replay(invented(turns=1), ReplayOptions(window=20))


def test_the_summary_gives_way_before_a_request_breaks_a_very_small_window() -> None:
    """The system prompt, the tools, the user's texts and one round leave the summary almost nothing."""
    session = read_session(EXAMPLE)
    result = replay(session, ReplayOptions(window=4_000))
    assert result.over_window_calls == 0
    assert result.rules


@pytest.mark.parametrize("turns", [1, 3, 8, 20])
def test_in_a_window_chosen_for_compactions_they_happen_or_there_is_none(turns: int) -> None:
    session = invented(turns=turns, rounds=8)
    window, whole = telling_window(session, ReplayOptions())
    if window is None:
        assert whole < 2 * ROOM_TOKENS_MIN, "too small"
    else:
        assert replay(session, ReplayOptions(window=window)).compactions


def test_a_chosen_window_is_not_wider_than_the_sessions_own() -> None:
    session = invented(turns=40, rounds=8)
    wide, whole = telling_window(session, ReplayOptions())
    own = attrs.evolve(session, window=whole // 4)
    narrow, _ = telling_window(own, ReplayOptions())
    assert wide is not None
    assert narrow is not None
    assert narrow <= own.window < wide
    assert replay(own, ReplayOptions(window=narrow)).compactions


def test_a_call_that_cannot_fit_is_counted_and_typed() -> None:
    tight = Policy(name="tight", target_ratio=0.1, clip_ratio=1.0)
    result = replay(invented(turns=1), ReplayOptions(window=150, counter="estimate", policy=tight))
    assert result.over_window_calls == result.cannot_fit > 0
    assert result.problems == ()


def test_the_log_goes_into_the_store_that_was_named(tmp_path: Path) -> None:
    path = tmp_path / "kept.duckdb"
    result = replay(invented(), SMALL, store=path)
    with DuckDBStore(path) as store:
        assert store.head(TimelineId("invented")) == result.events
        with pytest.raises(StoreLockedError):
            replay(invented(), SMALL, store=path)
    with pytest.raises(MisuseError, match="already has a timeline 'invented'"):
        replay(invented(), SMALL, store=path)
    replay(invented(), attrs.evolve(SMALL, name="again"), store=path)
    with DuckDBStore(path) as store:
        assert [info.id for info in store.list()] == ["invented", "again"]


def test_a_replay_that_fails_leaves_no_store_behind(tmp_path: Path) -> None:
    with pytest.raises(MisuseError):
        replay(invented(), ReplayOptions(window=20), store=tmp_path / "new.duckdb")
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told_call_by_call() -> None:
    told: list[tuple[int, int]] = []
    replay(invented(turns=1), SMALL, progress=lambda done, total: told.append((done, total)))
    assert told == [(n, 6) for n in range(1, 7)]


# A replay knows no API: it prices the requests of another provider by what that provider says.


STEADY = attrs.evolve(EVERYTHING, name="steady", trigger_tokens=3_000)
"""Compacts long before the window is full, and prunes nothing."""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = plain_text()
    monkeypatch.setitem(PROVIDERS.loaded, "anthropic", provider)
    return provider


@pytest.mark.usefixtures("plain")
@for_each("summarizer", ["extractive", "stand-in"])
def test_a_session_is_replayed_and_priced_with_a_provider_of_plain_text(summarizer: Any) -> None:
    sent: list[DumpRecord] = []
    options = ReplayOptions(policy=STEADY, counter="estimate", summarizer=summarizer)
    result = replay(invented(), options, dump=sent.append)
    assert result.problems == ()
    assert result.calls == len(sent) == 24
    assert result.folds
    assert all(list(one.rendered.request()) == ["prompt"] for one in sent)
    billed = result.cache
    assert billed.read + billed.write + billed.uncached == sum(one.rendered.tokens for one in sent)
    units = billed.uncached + billed.write + billed.read / 2
    assert result.units.prompt == pytest.approx(units)
    assert bool(result.units.summaries) == (summarizer == "stand-in")
    assert result.warm_busts == result.folds  # sent within seconds, so what was cut was still there


@pytest.mark.usefixtures("plain")
def test_what_the_agent_could_read_in_a_request_its_provider_says() -> None:
    options = ReplayOptions(policy=STEADY, window=3_000, counter="estimate")
    result = replay(invented(), options)
    assert result.recall.near == 1, "the newest rounds are in every request"
    tools = cast("Any", options.tools_for(invented()))
    assert tools == [{"name": "bash"}, {"name": "read file"}], "names as this provider takes them"


@pytest.mark.usefixtures("plain")
def test_what_two_requests_have_in_common_is_read_by_the_providers_rules() -> None:
    """All of the last one; a prompt below the minimum of the model (512) is no entry."""
    replayed = Replay.begin(invented(turns=1), ReplayOptions(counter="estimate"))
    replayed.run()
    bill, full = replayed.bill, [point.full_tokens for point in replayed.points]
    entries = [tokens for tokens in full if tokens >= 512]
    assert len(entries) == 4
    assert bill.busts == 0
    assert bill.read == sum(entries[:-1])
    assert bill.write == entries[-1]
    assert bill.uncached == sum(full) - sum(entries)


@pytest.mark.usefixtures("plain")
def test_the_provider_says_what_a_long_prompt_costs() -> None:
    model = Model(name="plain", price_input=2.0, price_output=10.0)
    step = Replay.begin(invented(turns=1), ReplayOptions()).bill.cache.step(0, [])
    assert price(step, model) == 0
    call = SummaryCall(input_tokens=LONG, cached_prefix_tokens=1_000, output_tokens=100)
    assert summary_price(call, model) == pytest.approx((4_000 * 2 + 1_000 + 100 * 10) / 1e6)
    assert summary_cost(call, ordinary_rates(model)) == pytest.approx(4_000 + 500 + 500)
    long = SummaryCall(input_tokens=LONG + 1)
    assert summary_price(long, model) == pytest.approx(6 * (LONG + 1) / 1e6)


# What holds for every recorded session, replayed into a window that is too small for it.


RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[3].parent / "shared/data/sessions")
)
FILES = sorted(
    path.name for kind in ("cc", "codex", "pi", "mini") for path in RECORDED.glob(f"{kind}-*.json*")
)


@pytest.mark.recorded
@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
@for_each("window", sized([30_000], [60_000, 30_000]))
@for_each("name", FILES)
def test_every_promise_is_kept_on_a_recorded_session(name: str, window: int) -> None:
    session = read_session(RECORDED / name)
    options = ReplayOptions(window=window, counter="o200k", keep_thinking=False)
    result = replay(session, options)
    assert result.calls == len(session.calls)
    assert result.problems == ()
    assert result.validity_violations == 0
    assert result.over_window_calls == 0
    assert result.reopened_equal
    blocks = sum(len(item.blocks) for item in session.items)
    assert blocks <= result.coverage.blocks <= blocks + result.prunes, "a prune adds one notice"


# The coverage invariant notices each way in which a block can be lost or doubled.


@pytest.fixture(scope="module")
def lived() -> tuple[list[Recorded], View]:
    """A timeline with a note that was compacted at least twice."""
    clock = Clock()
    timeline = Timeline.open(
        "x", store=MemoryStore(), window=3_000, counter="estimate", clock=clock, ids=counted()
    )
    noted = False
    for item in invented().items:
        clock.now = item.at
        if isinstance(item, Responded):
            timeline.render()
        timeline.append(*item.blocks)
        if not noted:
            timeline.note("The build needs Python 3.11.")
            noted = True
    events = list(timeline.events())
    assert sum(isinstance(event, RangeCompacted) for _, event in events) >= 2
    return events, timeline.view


def problems(events: Sequence[Recorded], view: View) -> str:
    return "; ".join(coverage(events, view).problems)


def replaced(events: Sequence[Recorded], version: int, event: Event) -> list[Recorded]:
    return [(v, event if v == version else e) for v, e in events]


def test_what_the_engine_did_is_without_fault(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    found = coverage(events, view)
    assert found.problems == ()
    assert found.blocks == sum(isinstance(event, BlockAppended) for _, event in events)
    assert found.carried
    assert found.folded
    assert found.visible
    assert (found.tool_calls, found.tool_results) == (20, 20)


def test_every_block_has_exactly_one_place(lived: tuple[list[Recorded], View]) -> None:
    events, _ = lived
    where = places(events)
    assert where.keys() == {v for v, event in events if isinstance(event, BlockAppended)}
    assert set(where.values()) <= {"visible", "hidden", "folded", "carried"}


def test_a_block_missing_in_the_view_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    assert "missing in the view" in problems(events, attrs.evolve(view, groups=view.groups[:-1]))


def test_a_block_twice_in_the_view_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    twice = attrs.evolve(view, groups=(*view.groups, view.groups[-1]))
    assert "stands in the view twice" in problems(events, twice)


def test_a_changed_block_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    version, event = next((v, e) for v, e in reversed(events) if isinstance(e, BlockAppended))
    other = UserPrompt(id=event.block.id, turn=event.block.turn, text="something else")
    changed = msgspec.structs.replace(event, block=other)
    assert f"version {version} is not what was appended" in problems(
        replaced(events, version, changed), view
    )


def test_blocks_between_two_ranges_are_noticed(lived: tuple[list[Recorded], View]) -> None:
    """What an engine loses that keeps a tail at the first compaction and forgets it at the second."""
    events, view = lived
    version, event = [(v, e) for v, e in events if isinstance(e, RangeCompacted)][-1]
    gap = msgspec.structs.replace(event, start=event.start + 1)
    assert "is in 0 folded ranges" in problems(replaced(events, version, gap), view)
    overlap = msgspec.structs.replace(event, start=1)
    assert "is in 2 folded ranges" in problems(replaced(events, version, overlap), view)


def test_a_note_left_behind_by_a_cut_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, _ = lived
    version, event = [(v, e) for v, e in events if isinstance(e, RangeCompacted)][-1]
    without = tuple(c for c in event.carried if not isinstance(c.block, Note))
    assert len(without) < len(event.carried)
    changed = replaced(events, version, msgspec.structs.replace(event, carried=without))
    assert "did not outlive the cut" in problems(changed, open_view(window_of(changed)))


def test_a_view_of_another_compaction_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    assert "the view starts from compaction 0" in problems(
        events, attrs.evolve(view, compaction=None)
    )


def test_a_hidden_block_that_the_view_shows_is_noticed() -> None:
    timeline = Timeline.open("x", ids=counted())
    timeline.user("Hello.")
    shown = timeline.view
    timeline.hide("ar:t1.user.prompt")
    assert coverage(timeline.events(), timeline.view).problems == ()
    assert coverage(timeline.events(), timeline.view).hidden == 1
    assert "not hidden as the log says" in problems(timeline.events(), shown)
    timeline.restore("ar:t1.user.prompt")
    assert coverage(timeline.events(), timeline.view).hidden == 0


def test_undoing_a_compaction_makes_everything_visible_again() -> None:
    timeline = Timeline.open("x", ids=counted(), counter="estimate", window=3_000)
    for item in invented(turns=2).items:
        timeline.append(*item.blocks)
    timeline.compact()
    assert coverage(timeline.events(), timeline.view).folded
    timeline.expand()
    found = coverage(timeline.events(), timeline.view)
    assert (found.folded, found.problems) == (0, ())


def test_a_result_whose_call_was_folded_is_noticed() -> None:
    call = ToolCall(
        id=BlockId("a"), turn=TurnId("t1"), response="r", call_id=CallId("c"), name="ls", input={}
    )
    result = ToolResult(id=BlockId("b"), turn=TurnId("t1"), call_id=CallId("c"))
    timeline = Timeline.open("x", ids=counted())
    timeline.user("Hello.")
    timeline.append(call, result)
    events = list(timeline.events())
    alone = open_view(window_of([e for e in events if e[0] != 3]))
    fold = RangeCompacted(id=EventId("f"), at=0.0, start=1, cut=4, summary=_summary())
    view = attrs.evolve(alone, compaction=None)
    assert "lost its call to a fold" in problems([*events, (5, fold)], view)


def _summary() -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"), turn=TurnId("t1"), summary=StructuredSummary(), digest=Digest()
    )
