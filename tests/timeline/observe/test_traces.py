"""What a timeline and its agent do can be seen in any back end that takes OpenTelemetry's spans: which belongs
to which, how long it took, what it cost, and whether it failed."""

import asyncio
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from blocks import ClosedError, Provenance, StructuredSummary
from persistence import MemoryStore
from render import Summary
from tests._builders import Clock, open_timeline, response, tool_use
from tests._table import for_each
from tests._tracing import Broken, Watched, told
from timeline import (
    AsyncTimeline,
    Hooks,
    Step,
    SummaryFailedError,
    SummaryRequest,
    Timeline,
    describe_model,
)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@attrs.frozen
class Writer:
    """A model that writes summaries; it notes the span in which it is asked."""

    name: str = "claude-haiku-4-5"
    inside: list[object] = attrs.field(factory=list[object])

    def __call__(self, _: SummaryRequest) -> Summary:
        self.inside.append(get_current_span().get_span_context().span_id)
        spent = Provenance(source_hash="", model=self.name, input_tokens=90, output_tokens=7)
        return Summary(summary=StructuredSummary(task="go"), provenance=spent)


def work(timeline: Timeline, rounds: int, size: int = 800) -> None:
    for n in range(timeline.version, timeline.version + rounds):
        timeline.record(response(tool_use(f"c{n}", "bash", command=f"make {n}"), id=f"r{n}"))
        timeline.tool_result(f"c{n}", f"{n} " * (size // 4))


def test_a_render_is_a_span_with_an_event_a_step(watched: Watched) -> None:
    steps: list[Step] = []
    timeline = open_timeline(window=4_000, tracer=watched.tracer, observers=[steps.append])
    timeline.user("go")
    timeline.render()
    assert "foldline.compacted" not in told(watched.only("foldline.render"))
    work(timeline, 30)
    rendered = timeline.render()
    span = watched.spans("foldline.render")[-1]
    assert [event.name for event in span.events] == [f"foldline.{s.kind}" for s in steps[1:]]
    assert dict(span.events[0].attributes or {})["foldline.tokens_freed"] == steps[1].tokens_freed
    assert told(span)["foldline.tokens"] == rendered.tokens
    assert told(span)["gen_ai.conversation.id"] == told(span)["session.id"] == timeline.id
    assert told(span)["gen_ai.provider.name"] == "anthropic"
    assert told(span)["foldline.compacted"] is True


@for_each("verb", ["fork", "sibling"])
def test_spans_of_a_timeline_that_comes_of_another_have_its_own_name(
    watched: Watched, verb: str
) -> None:
    """A fork; or that of a sub-agent."""
    first = open_timeline(tracer=watched.tracer, window=4_000, summarizer=Writer())
    first.user("go")
    watched.exporter.clear()
    other = getattr(first, verb)("other")
    other.user("go on")
    work(other, 30)
    other.compact()
    names = {told(span)["gen_ai.conversation.id"] for span in watched.exporter.get_finished_spans()}
    assert names == {"other"}
    assert watched.spans("chat"), "nor do the calls for its summaries have another"


def test_a_compaction_is_a_span_in_its_render_and_each_commit_one_more(watched: Watched) -> None:
    timeline = open_timeline(window=4_000, tracer=watched.tracer)
    timeline.user("go")
    work(timeline, 30)
    timeline.compact()
    span = watched.only("foldline.compact")
    assert watched.parents(span) == ["foldline.render"]
    assert told(span)["foldline.trigger"] == "forced"
    before, after = told(span)["foldline.tokens_before"], told(span)["foldline.tokens_after"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert 0 < after < before
    assert told(watched.only("foldline.render"))["foldline.compacted"] is True
    commits = [s for s in watched.spans("foldline.append") if watched.parents(s)]
    assert [told(commit)["foldline.events"] for commit in commits] == [1, 1]
    for commit in commits:  # of the compaction, and of the request
        assert watched.parents(commit) == ["foldline.render"]
        assert told(commit)["foldline.store"] == "MemoryStore"


def test_each_call_of_the_store_is_a_span(watched: Watched) -> None:
    store = MemoryStore()
    first = open_timeline(store=store, tracer=watched.tracer)
    second = open_timeline(store=store, tracer=watched.tracer)
    first.user("go")
    second.user("on")
    names = [span.name for span in watched.spans()]
    assert names == [
        *("foldline.load", "foldline.load"),
        *("foldline.append", "foldline.read", "foldline.append"),
    ]
    assert [told(span)["foldline.events"] for span in watched.spans()] == [0, 0, 2, 2, 2]
    assert {told(span)["foldline.store"] for span in watched.spans()} == {"MemoryStore"}


def test_a_summary_that_a_model_writes_is_a_call_of_that_model(watched: Watched) -> None:
    writer = Writer()
    timeline = open_timeline(
        window=4_000, tracer=watched.tracer, meter=watched.meter, summarizer=writer
    )
    timeline.user("go")
    work(timeline, 12)
    timeline.compact()
    [(about, tokens)] = [
        point
        for point in watched.measures("gen_ai.client.token.usage")
        if point[0]["gen_ai.token.type"] == "input"
    ]
    assert (about["gen_ai.request.model"], about["foldline.purpose"], tokens) == (
        "claude-haiku-4-5",
        "summary",
        90,
    )
    span = watched.only("chat")
    assert (span.name, span.kind) == ("chat claude-haiku-4-5", SpanKind.CLIENT)
    assert told(span)["gen_ai.usage.input_tokens"] == 90
    assert watched.parents(span) == ["foldline.compact", "foldline.render"]
    assert span.context
    assert writer.inside == [span.context.span_id]


def test_what_a_hook_does_belongs_to_the_compaction_that_called_it(watched: Watched) -> None:
    def before(_: object) -> None:
        with watched.tracer.start_as_current_span("mine"):
            pass

    hooks = Hooks(on_before_compaction=[before])
    timeline = open_timeline(window=4_000, tracer=watched.tracer, hooks=hooks)
    timeline.user("go")
    work(timeline, 12)
    timeline.compact()
    assert watched.parents(watched.only("mine")) == ["foldline.compact", "foldline.render"]


def test_what_fails_sets_the_status_of_its_span(watched: Watched) -> None:
    timeline = open_timeline(tracer=watched.tracer)
    timeline.close()
    with pytest.raises(ClosedError):
        timeline.render()
    span = watched.only("foldline.render")
    assert span.status.status_code is StatusCode.ERROR
    assert told(span)["error.type"] == "ClosedError"


def test_an_async_timeline_has_the_same_spans(watched: Watched) -> None:
    async def run() -> None:
        timeline = await AsyncTimeline.open(
            "talk", clock=Clock(), window=4_000, counter="estimate", tracer=watched.tracer
        )
        for n in range(40):
            await timeline.user(f"Question {n}: " + "what is in the feed? " * 20)
        await timeline.compact()
        await timeline.close()

    asyncio.run(run())
    compact = watched.only("foldline.compact")
    assert watched.parents(compact) == ["foldline.render"]
    assert not [s for s in watched.spans() if s.status.status_code is StatusCode.ERROR]


def test_nothing_is_current_once_a_render_is_over(watched: Watched) -> None:
    timeline = open_timeline(tracer=watched.tracer)
    timeline.user("go")
    timeline.render()
    assert not get_current_span().get_span_context().is_valid


def test_what_answers_cost_and_compactions_fold_is_measured(watched: Watched) -> None:
    mine = describe_model(
        "mine", provider="anthropic", tokens_window=100_000, price_input=2, price_output=10
    )
    timeline = open_timeline(window=4_000, model=mine, meter=watched.meter)
    timeline.user("go")
    for n in range(12):
        usage = {"input_tokens": 100, "cache_read_input_tokens": 0, "output_tokens": 10}
        call = tool_use(f"c{n}", "bash", command=f"make {n}")
        timeline.record(response(call, id=f"r{n}", model="mine", usage=usage))
        timeline.tool_result(f"c{n}", f"{n} " * 200)
    before = timeline.render().tokens
    freed = before - timeline.compact().tokens
    tokens = {a["gen_ai.token.type"]: n for a, n in watched.measures("gen_ai.client.token.usage")}
    assert tokens == {"input": 1_200, "output": 120}
    [(_, compactions)], [(about, folded)] = map(
        watched.measures, ("foldline.compactions", "foldline.tokens.folded")
    )
    assert (compactions, about["foldline.trigger"]) == (1, "forced")
    assert folded == pytest.approx(freed, abs=0.1 * before)
    [(about, dollars)] = watched.measures("foldline.cost")
    assert dollars == pytest.approx((1_200 * 2 + 120 * 10) / 1e6)
    assert about["gen_ai.request.model"] == about["gen_ai.response.model"] == "mine"


def test_a_summary_that_failed_is_paid_and_measured(watched: Watched) -> None:
    @attrs.frozen
    class Failing:
        name: str = "claude-haiku-4-5"

        def __call__(self, _: SummaryRequest) -> Summary:
            failed = SummaryFailedError("no summary")
            failed.provenance = Provenance(source_hash="", model=self.name, cost_usd=0.25)
            raise failed

    timeline = open_timeline(window=4_000, meter=watched.meter, summarizer=Failing())
    timeline.user("go")
    work(timeline, 12)
    timeline.compact()
    [(about, dollars)] = watched.measures("foldline.cost")
    assert (about["foldline.purpose"], dollars) == ("summary", 0.25)
    [(about, _)] = watched.measures("gen_ai.client.operation.duration")
    assert about["error.type"] == "SummaryFailedError"


def test_a_count_of_a_refused_request_costs_nothing(watched: Watched) -> None:
    timeline = open_timeline(
        model="claude-sonnet-5-5", meter=watched.meter, count_tokens=lambda _: 9
    )
    timeline.user("go")
    timeline.calibrate()
    assert not watched.measures("foldline.cost")
    assert not watched.measures("gen_ai.client.token.usage")


@given(st.sets(st.integers(1, 40)) | st.just(frozenset(range(10_000))))
def test_a_broken_tracer_or_meter_changes_nothing(failures: set[int]) -> None:
    def requests(**options: Any) -> list[object]:
        timeline = open_timeline(window=4_000, **options)
        timeline.user("go")
        work(timeline, 12)
        first, forced = timeline.render(), timeline.compact()
        return [first.request(), forced.request(), timeline.version]

    broken = Broken(failures.__contains__)
    assert requests(tracer=broken, meter=broken) == requests()
    assert broken.calls


def test_a_tracer_whose_spans_are_nothing_changes_nothing() -> None:
    class Silent:
        def start_span(self, *_: object, **__: object) -> object:
            return None

    class Empty(Silent):
        def start_span(self, *_: object, **__: object) -> object:
            return object()

    for tracer in (Silent(), Empty()):
        timeline = open_timeline(tracer=tracer, window=4_000)
        timeline.user("go")
        work(timeline, 12)
        assert timeline.compact().messages
