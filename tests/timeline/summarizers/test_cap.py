"""`Policy.summaries_max` is a cap: no call of a summariser escapes it, whatever comes of the call (000-5)."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import Provenance, RangeCompacted, StructuredSummary, SummaryRequested
from persistence import MemoryStore
from render import Summary
from tests._builders import Clock, Ids, events_of, open_timeline
from tests._practice import Practice
from timeline import SummaryFailedError, SummaryRequest, Timeline
from timeline.fake_provider import FakeServer, Reply

from .talk import MODEL, SMALL, SYSTEM, opened, talk

OUTCOMES = ("written", "priced", "in three calls", "fails", "fails in two calls", "wrong type")
SOON = attrs.evolve(SMALL, prepare_ratio=0.4)


@attrs.define
class Outcomes:
    """A summariser whose calls come to this, one after the other; then it goes on with the last one."""

    left: list[str]
    name: str
    calls: int = 0

    def __call__(self, request: SummaryRequest, /) -> Any:
        outcome = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        wanted = 3 if outcome == "in three calls" else 1 + (outcome == "fails in two calls")
        assert request.calls_max is not None
        made = min(wanted, request.calls_max)
        self.calls += made
        spent = Provenance(source_hash=request.range.source_hash, model="m", calls=made)
        match outcome:
            case "wrong type":
                return "a text"
            case "fails":
                raise TimeoutError
            case "fails in two calls":
                failed = SummaryFailedError("no")
                failed.provenance = spent
                raise failed
            case "written":
                return Summary(summary=StructuredSummary(state="s"))
            case _:
                return Summary(summary=StructuredSummary(state="s"), provenance=spent)


@given(
    st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=8),
    st.sampled_from(["", "m"]),
    st.integers(0, 9),
    st.sampled_from(["ahead", "at once"]),
)
def test_every_call_counts_failed_or_not_in_the_background_or_not_and_across_reopens(
    outcomes: list[str], name: str, cap: int, when: str
) -> None:
    policy = attrs.evolve(SOON if when == "ahead" else SMALL, summaries_max=cap)
    summarizer, store, ids = Outcomes(list(outcomes), name), MemoryStore(), Ids()
    if not name:
        del summarizer.name  # it does not say what it calls, as any function

    def reopened() -> Timeline:
        options: dict[str, Any] = {
            "model": MODEL,
            "window": 4000,
            "policy": policy,
            "summarizer": summarizer,
        }
        return open_timeline(store=store, ids=ids, clock=Clock(), **options)

    for round_ in range(12):
        with reopened() as timeline:
            talk(timeline, 4, 4 * round_, lines=20)
            timeline.render()
        timeline = reopened()
        assert timeline.view.state.summaries == summarizer.calls <= cap
    assert sum(event.calls for event in events_of(timeline, SummaryRequested)) == summarizer.calls
    assert len(events_of(timeline, RangeCompacted)) > 1


@pytest.mark.parametrize("cap", [1, 2, 5])
@pytest.mark.parametrize("policy", [SMALL, SOON], ids=["at once", "ahead"])
def test_a_model_that_is_tried_twice_gets_no_more_calls_than_the_cap(
    practice: Practice, policy: Any, cap: int, caplog: pytest.LogCaptureFixture
) -> None:
    server: FakeServer = practice.serve(responder=lambda _: Reply(text="no JSON at all"))
    capped = attrs.evolve(policy, summaries_max=cap)
    timeline = opened(practice.client(server), policy=capped)
    for round_ in range(12):
        talk(timeline, 4, 4 * round_)
        timeline.render(system=SYSTEM)
    timeline.close()
    # A summary that takes more calls than are left fails without one, and counts as one.
    assert cap - 1 <= len(server.requests) <= cap == timeline.view.state.summaries
    assert "has used up its calls for summaries; from now on they are extractive" in caplog.text


class Free:
    """A summariser that calls no model, and says so."""

    name = ""

    def __call__(self, request: SummaryRequest, /) -> Summary:
        assert request.calls_max is None
        return Summary(summary=StructuredSummary(state="s"))


def test_a_summariser_that_says_that_it_calls_no_model_is_not_counted() -> None:
    policy = attrs.evolve(SMALL, summaries_max=0)
    timeline = opened(None, summarizer=Free(), policy=policy)
    talk(timeline, 20)
    timeline.compact()
    assert timeline.view.compaction
    assert timeline.view.compaction.event.summary.summary.state == "s"
    assert not events_of(timeline, SummaryRequested)
