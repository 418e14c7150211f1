"""A report says what was sent, what it cost and where every block is; nothing that is to stay hidden is in it."""

import json
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    BlockAppended,
    Envelope,
    EventId,
    OpaqueEvent,
    RangeCompacted,
    RequestRendered,
    UsageRecorded,
)
from persistence import MemoryStore
from persistence.sessions import Responded
from tests._table import for_each
from tests.strategies import Play, Step, settings, steps
from tests.timeline.replay.invented import invented
from tests.timeline.report.pages import Page, request_in, states_in
from timeline import Policy, Timeline, model_named
from timeline.billing import PaidBlock, RecordedBill
from timeline.engine._engine import counted
from timeline.replay import DumpRecord, Replayed, ReplayOptions, places, replay_with_log
from timeline.report import Prompting, report_html, reported_log, reported_replay
from timeline.report._money import Money

SMALL = ReplayOptions(window=2_500, counter="estimate", policy=Policy(clip_ratio=0.04))
PROVIDERS = ("anthropic", "openai.responses", "openai.chat", "gemini")
FACTS = {"name": "x", "title": "x", "timeline": "x"}


def replayed(**options: Any) -> tuple[Replayed, list[dict[str, Any]]]:
    """A replay that compacts, and the requests that it sent."""
    sent: list[dict[str, Any]] = []

    def dump(each: DumpRecord) -> None:
        sent.append(json.loads(json.dumps(each.rendered.request())))

    chosen = attrs.evolve(SMALL, **options)
    return replay_with_log(invented(), chosen, dump=dump), sent


def seen(timeline: Timeline, *, hidden: bool = False) -> Page:
    reported = reported_log(
        list(timeline.events()), Prompting(settings=timeline.settings), FACTS, hidden=hidden
    )
    return Page.of(report_html("x", [reported]))


@for_each("provider", PROVIDERS)
def test_every_request_is_the_one_that_was_sent(provider: str) -> None:
    done, sent = replayed(provider=provider)
    assert any(isinstance(event, RangeCompacted) for _, event in done.log)
    page = Page.of(report_html("x", [reported_replay(done)]))
    overview, contents = page.json("overview-0"), page.json("contents-0")
    assert len(sent) == 24
    assert [request_in(overview, contents, call) for call in range(24)] == sent
    assert overview["calls"]["exact"] == [1] * 24


def test_the_numbers_are_those_of_the_replay() -> None:
    done, _ = replayed()
    calls = reported_replay(done).collector.overview()["calls"]
    result = done.result
    assert calls["tokens"] == [point.tokens for point in result.points]
    assert calls["full"] == [point.full_tokens for point in result.points]
    assert sum(calls["paid"]) == pytest.approx(result.cost.prompt, abs=1e-5)
    assert sum(calls["fullPaid"]) == pytest.approx(result.cost.full_history, abs=1e-5)
    assert sum(calls["read"]) == result.cache.read
    assert sum(calls["write"]) == result.cache.write
    assert sum(calls["bust"]) == result.warm_busts
    folds = sum(list(decisions).count("compacted") for decisions in calls["decisions"])
    assert folds == result.folds


def with_usage(**changes: Any) -> Replayed:
    """A replay of a session whose log has usage at its own model."""
    usage = UsageRecorded(
        id=EventId("u"), at=0.0, uncached=5, cache_read=900, cache_write=300, output=50
    )
    fields = {"model": "claude-opus-4-5", "usage": usage, **changes}
    session = invented()
    items = [
        attrs.evolve(item, **fields) if isinstance(item, Responded) else item
        for item in session.items
    ]
    return replay_with_log(attrs.evolve(session, items=tuple(items), folder="/home/me"), SMALL)


def figures(done: Replayed) -> list[tuple[Any, ...]]:
    """Name, dollars and whether it is a loss, of each."""
    return [(f["name"], f["dollars"], f["is_loss"]) for f in reported_replay(done).facts["figures"]]


def test_the_three_figures_of_a_replay_are_its_recorded_bill_what_it_would_be_and_the_difference() -> (
    None
):
    done, _ = replayed()
    for foldline, name, is_loss in ((2.5, "more", True), (1.5, "saved", False)):
        bill = RecordedBill(dollars=2.0, calls=24, foldline=foldline)
        told = figures(attrs.evolve(done, result=attrs.evolve(done.result, recorded_bill=bill)))
        assert told == [
            ("bill", 2.0, False),
            ("with foldline", foldline, False),
            (name, 0.5, is_loss),
        ]
    alone = attrs.evolve(done.result, recorded_bill=RecordedBill(dollars=2.0, calls=24))
    told = figures(attrs.evolve(done, result=alone))
    assert [dollars for _, dollars, _ in told] == [2.0, None, None], "what was not computed"
    no_bill, prompts, saved = figures(done)
    assert (no_bill[1], saved[1]) == (None, None), "a log without usage has no bill"
    assert prompts[1] == done.result.cost.total


def test_the_calls_of_a_replay_cost_what_the_recording_says_each_at_its_own_model() -> None:
    done = with_usage()
    overview = reported_replay(done).collector.overview()
    assert overview["priced"] == "recorded"
    calls = overview["calls"]
    assert sum(map(sum, calls["money"])) == pytest.approx(done.result.recorded_bill.dollars)
    kinds = done.result.recorded_bill.parts
    for number, names in enumerate((["cache_read"], ["cache_write_5m"], ["input"], ["output"])):
        paid = sum(money[number] for money in calls["money"])
        assert paid == pytest.approx(sum(kinds[name] for name in names), abs=1e-5), names
    assert calls["sent"] == [1_205] * 24
    assert all(calls["why"])
    assert reported_replay(done).facts["folder"] == "/home/me"
    unpriced = with_usage(model="nobody's")
    assert figures(unpriced)[0][1] is None, "no price is known, and none is invented"
    assert reported_replay(unpriced).collector.overview()["priced"] == "simulated"


def test_what_blocks_cost_adds_up_to_no_more_than_the_calls() -> None:
    """The rest is what no block accounts for."""
    for done in (with_usage(), replayed()[0]):
        overview = reported_replay(done).collector.overview()
        spent, money = overview["spent"], overview["calls"]["money"]
        assert 0 < sum(spent["dollars"]) <= sum(map(sum, money)) * 1.001
        assert min(spent["dollars"]) >= 0
        assert {"the user's words", "answers and thinking", "tool bash"} <= {*spent["parts"]}


def test_a_block_costs_until_it_is_cut_out_by_our_events_or_by_an_agent_of_its_own() -> None:
    """Of our own requests the log says when; of another agent's, a prompt that is suddenly small."""
    usages = [
        UsageRecorded(id=EventId("u"), at=0.0, model="claude-opus-4-5", uncached=tokens)
        for tokens in (1_000, 2_000, 300, 400)
    ]

    def cost(end: int | None, *, recorded: bool = False) -> Any:
        money = Money.of(usages if recorded else (), usages, (), model_named("claude-opus-4-5"))
        piece = PaidBlock(part="x", file="", tokens=100, born=-1, first=0, end=end)
        return money.by_block([money.piece(piece)])["dollars"][0]

    assert cost(1) < cost(2) < cost(4)
    assert cost(None) == cost(2) == cost(4, recorded=True)


def test_a_block_belongs_to_its_tool_and_to_the_file_or_the_program_of_its_call() -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("Read", {"file_path": "/src/a.py"}, "/src/a.py"),
        ("Bash", {"command": "# look\ncd /src && FOO=1 git log | head"}, "git"),
        ("shell", {"command": ["python3", "-m", "pytest"]}, "python3"),
        ("Grep", {"pattern": "x"}, ""),
    ]
    with Timeline.open("x", store=MemoryStore()) as timeline:
        timeline.user("Look.")
        content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": f"c{at}", "name": name, "input": given}
            for at, (name, given, _) in enumerate(calls)
        ]
        timeline.record({"id": "m", "content": content})
        for at in range(len(calls)):
            timeline.tool_result(f"c{at}", "some text")
        spent = seen(timeline).json("overview-0")["spent"]
    pairs = zip(spent["part"], spent["file"], strict=True)
    named = [(spent["parts"][part], spent["files"][file]) for part, file in pairs]
    told = [(f"tool {name}", of) for name, _, of in calls]
    assert named[-8:-4] == named[-4:] == told, "a result belongs where its call does"


def test_sending_everything_is_estimated_well_where_nobody_measured_it() -> None:
    done, _ = replayed()
    ours = done.timeline
    prompting = Prompting(
        settings=ours.timeline.settings, system=ours.system, tools=ours.tools, counter="estimate"
    )
    calls = reported_log(done.log, prompting, FACTS, hidden=True).collector.overview()["calls"]
    measured = [point.full_tokens for point in done.result.points]
    for estimated, tokens in zip(calls["full"], measured, strict=True):
        assert estimated == pytest.approx(tokens, rel=0.05)
    assert sum(calls["fullPaid"]) == pytest.approx(done.result.cost.full_history, rel=0.1)


@given(all_steps=steps(), options=settings())
def test_where_a_block_is_the_log_says_too(all_steps: list[Step], options: dict[str, Any]) -> None:
    play = Play(options).run(all_steps)
    log = list(play.timeline.events())
    prompting = Prompting(settings=play.timeline.settings)
    overview = reported_log(log, prompting, FACTS, hidden=True).collector.overview()
    told = {
        version: state if state in {"visible", "folded", "carried"} else "hidden"
        for version, state in states_in(overview).items()
    }
    assert told == places(log)


@given(all_steps=steps(hides=False), options=settings())
def test_what_any_log_is_rendered_to_can_be_put_together_again(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = Play(options).run(all_steps)
    sent = [request.rendered for request in play.requests]
    if not sent or any(rendered.rehydrated for rendered in sent):
        return
    first = sent[0]
    prompting = Prompting(
        settings=play.timeline.settings, system=list(first.system), tools=list(first.tools)
    )
    log = list(play.timeline.events())
    collector = reported_log(log, prompting, FACTS, hidden=True).collector
    overview, contents = collector.overview(), collector.contents()
    exact = overview["calls"]["exact"]
    rendered = iter(sent)
    for call, is_exact in enumerate(exact):
        if not overview["calls"]["rendered"][call]:
            continue
        request = next(rendered, None)
        if is_exact and request is not None:
            assert request_in(overview, contents, call) == json.loads(json.dumps(request.request()))


@given(cut=st.integers(0, 400))
def test_a_log_in_any_order_makes_a_page(cut: int) -> None:
    """What an older release wrote, or what was forgotten at its beginning, is no reason to fail."""
    done, _ = replayed() if "log" not in _KEPT else _KEPT["log"]
    _KEPT["log"] = done, []
    log = list(done.log)[cut:]
    log = [each for number, each in enumerate(log) if number % 7 != 3]
    log.append((log[-1][0] + 1 if log else 1, OpaqueEvent("Later", {"id": "z", "at": "?"})))
    prompting = Prompting(settings=done.timeline.timeline.settings)
    page = Page.of(report_html("x", [reported_log(log, prompting, FACTS, hidden=False)]))
    overview, contents = page.json("overview-0"), page.json("contents-0")
    assert overview["version"] == log[-1][0]
    events = dict(log)
    assert contents["changes"] == len(overview["changes"]["event"])
    for change, (replacement, _) in contents["stands"].items():
        told = msgspec.to_builtins(events[overview["changes"]["event"][int(change)]])
        assert replacement in str(told)


_KEPT: dict[str, Any] = {}


def secretive() -> Timeline:
    """A secret that was sent, quoted by a summary, and then hidden because somebody asked."""
    timeline = Timeline.open(
        "x", store=MemoryStore(), window=3_000, counter="estimate", ids=counted(), clock=lambda: 1.0
    )
    timeline.user("Deploy with PASSWORD_OF_THE_DATABASE = hunter2hunter2 please.")
    for item in invented().items:
        timeline.append(*item.blocks)
        timeline.render()
    return timeline


def test_what_is_hidden_on_request_is_in_no_part_of_a_report_unless_asked_for() -> None:
    with secretive() as timeline:
        assert any(isinstance(event, RangeCompacted) for _, event in timeline.events())
        assert "hunter2hunter2" in seen(timeline).everything
        timeline.hide("v2", replacement="(a secret)")
        page = seen(timeline)
        assert "hunter2hunter2" not in page.everything
        assert "(a secret)" in page.everything
        assert page.json("report")["runs"][0]["withheld"] is True
        assert "hunter2hunter2" in seen(timeline, hidden=True).everything


def test_confidential_content_is_in_no_part_of_a_report_unless_asked_for() -> None:
    """In memory the log has it; in a file it never does."""
    with Timeline.open("x", store=MemoryStore()) as timeline:
        timeline.user("Read the key.")
        timeline.record(
            {
                "id": "m1",
                "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}],
            }
        )
        timeline.render()
        timeline.tool_result(
            "c1", "the key is KEY-4711-KEY", envelope=Envelope(sensitivity="confidential")
        )
        assert "KEY-4711-KEY" in json.dumps(timeline.render().request())
        assert "KEY-4711-KEY" not in seen(timeline).everything
        assert "KEY-4711-KEY" in seen(timeline, hidden=True).everything


def test_a_log_without_requests_has_a_call_for_each_answer() -> None:
    """As after an import: nothing was rendered, so what the log renders to is shown."""
    store = MemoryStore()
    with Timeline.open("x", store=store, ids=counted(), clock=lambda: 1.0) as timeline:
        for item in invented(turns=1).items:
            timeline.append(*item.blocks)
        page = seen(timeline)
    calls = page.json("overview-0")["calls"]
    assert len(calls["tokens"]) == 6
    assert set(calls["rendered"]) == {0}
    assert calls["tokens"] == sorted(calls["tokens"])


def test_of_an_imported_log_the_provider_knew_how_much_was_sent() -> None:
    """Its agent sent requests of its own: their size and price are theirs, and what it left out is seen."""
    usage = {"input_tokens": 7, "cache_read_input_tokens": 50, "output_tokens": 3}
    with Timeline.open("x", store=MemoryStore(), model="claude-sonnet-5-5") as timeline:
        timeline.user("word " * 500)
        timeline.record({"id": "m", "content": [{"type": "text", "text": "Hi"}], "usage": usage})
        calls = seen(timeline).json("overview-0")["calls"]
    assert (calls["rendered"], calls["tokens"]) == ([0], [57])
    assert calls["full"][0] > 500
    assert calls["paid"][0] < calls["fullPaid"][0]


def test_what_the_provider_reported_goes_before_what_is_simulated() -> None:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 1_000, "output_tokens": 3}
    with Timeline.open("x", store=MemoryStore(), model="claude-sonnet-5-5") as timeline:
        timeline.user("Hello")
        timeline.render()
        timeline.record(
            {"id": "m", "model": "claude-sonnet-5-5", "content": [{"type": "text", "text": "Hi"}]}
            | {"usage": usage}
        )
        calls = seen(timeline).json("overview-0")["calls"]
    assert calls["usage"] == [[7, 1_000, 0, 3]]
    assert 0 < calls["paid"][0] < 0.001


def test_a_summary_tells_what_it_covers_and_what_was_carried() -> None:
    done, _ = replayed()
    [page] = [Page.of(report_html("x", [reported_replay(done)]))]
    rows, texts = page.json("overview-0")["summaries"], page.json("contents-0")["summaries"]
    folds = [(v, e) for v, e in done.log if isinstance(e, RangeCompacted)]
    assert len(rows) == len(texts) == len(folds) > 1
    blocks = [version for version, event in done.log if isinstance(event, BlockAppended)]
    for row, text, (version, event) in zip(rows, texts, folds, strict=True):
        assert row["version"] == version
        assert row["blocks"] == sum(event.start <= each < event.cut for each in blocks)
        assert row["carried"] == [item.version for item in event.carried]
        assert (row["before"], row["after"]) == (event.tokens_before, event.tokens_after)
        assert row["digest"]["blocks"] == event.summary.digest.blocks
        assert "<summary" in text
        calls = [v for v, e in done.log if isinstance(e, RequestRendered)]
        assert calls[row["call"]] > version, "the call that has it first"


def test_several_replays_stand_side_by_side() -> None:
    pages = [replayed(policy=policy)[0] for policy in ("default", "frugal")]
    page = Page.of(report_html("x", [reported_replay(each) for each in pages]))
    runs = page.json("report")["runs"]
    assert [run["name"] for run in runs] == ["invented, policy default", "invented, policy frugal"]
    assert page.json("overview-0") != page.json("overview-1")


def test_a_report_is_much_smaller_than_its_requests() -> None:
    done, sent = replayed()
    html = report_html("x", [reported_replay(done)])
    assert len(Page.of(html).data["contents-0"]) * 5 < len(json.dumps(sent))
