"""Replaying an invented session: what is counted, priced, dumped and kept."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import MisuseError, StoreLockedError, TimelineId
from persistence import DuckDBStore
from persistence.sessions import Responded, read_session
from render import Policy, provider_of, validate_request
from tests.timeline.replay.invented import START, invented
from timeline._models import model_named
from timeline.billing import Flattener, PromptCache
from timeline.replay import ReplayOptions, ReplayResult, dump_to, replay, telling_window
from timeline.replay._options import ROOM_TOKENS_MIN, SYSTEM
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
    steps = [cache.step(line["ts"], flattener.flatten(line["request"])) for line in lines]
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
