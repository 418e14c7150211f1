"""What users of other agent frameworks report as broken, and what is impossible here.

One test a row of the table of guarantees, in its order. Rows that are not
here have their own home:

* the compaction call is never cached, empty or invented summaries, the summariser's input
  overflows, compaction takes minutes in the loop: `timeline/summarizers/`, where a model writes;
* torn writes, storage explosion: `persistence/test_kills.py`, `persistence.testing`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import attrs
import pytest

from blocks import (
    BlocksHidden,
    CompactionSkipped,
    Decision,
    Event,
    OpaqueEvent,
    RangeCompacted,
    StructuredSummary,
    TimelineId,
    encode_block,
    encode_event,
    text_of,
)
from persistence import MemoryStore
from render import (
    Rendered,
    Summary,
    compaction_due,
    range_before_tail,
    total_tokens,
    validate_request,
)
from tests import _builders as make
from tests._builders import (
    BOUND,
    Clock,
    blocks_in,
    context,
    events_of,
    open_timeline,
    response,
    steady,
    text,
    tool_use,
)
from tests._table import for_each
from timeline import SummaryRequest, Timeline


def work(timeline: Timeline, rounds: int, *, first: int = 0, size: int = 200) -> None:
    for n in range(first, first + rounds):
        timeline.record(response(tool_use(f"toolu_{n}", "read", path=f"src/f{n}.py"), id=f"r{n}"))
        timeline.tool_result(f"toolu_{n}", "x" * 4 * size)


def is_prefix(one: Rendered, two: Rendered) -> bool:
    before, after = make.flat(one), make.flat(two)
    return after[: len(before)] == before


@attrs.define
class Forgetful:
    """A summariser that finds one rule and one choice each time, and repeats none."""

    calls: int = 0

    def __call__(self, _: SummaryRequest) -> Summary:
        self.calls += 1
        found = StructuredSummary(
            constraints=(f"rule {self.calls}",),
            decisions=(Decision(decision=f"choice {self.calls}"),),
        )
        return Summary(summary=found)


def test_rules_and_preferences_outlive_every_compaction() -> None:
    """Rules and preferences are gone after compaction: carried by the engine, byte for byte."""
    timeline = open_timeline(window=8000, summarizer=Forgetful())
    task = "Translate the site.\n  Keep  the double spaces!"
    timeline.user(task)
    timeline.note("Prefers tabs.\n\tReally.")
    for n in range(10):
        work(timeline, 12, first=12 * n)
        timeline.compact()
    compactions = len(events_of(timeline, RangeCompacted))
    assert compactions >= 10
    shown = make.text_in(timeline.render())
    notes = [text for _, text in make.quotations(shown, "note")]
    assert notes == ["Prefers tabs.\n\tReally."]
    assert f"\n{task}\n" in shown
    assert all(f"rule {n + 1}" in shown and f"choice {n + 1}" in shown for n in range(compactions))


def test_no_call_is_ever_without_its_result() -> None:
    """400, tool_use without tool_result: the check is total, and nothing separates a pair."""
    timeline = open_timeline(window=1500, policy=steady(prune_tokens_min=1, rounds_intact=1))
    timeline.user("go")
    for n in range(30):
        timeline.record(response(tool_use(f"a{n}"), tool_use(f"b{n}"), id=f"r{n}"))
        assert timeline.render().violations == ()  # a crash before any result
        timeline.tool_result(f"b{n}", "x" * 400)
        assert timeline.render().violations == ()  # a crash between the two
        timeline.tool_result(f"a{n}", "y" * 400)
        rendered = timeline.render()
        assert validate_request(rendered.anthropic(max_tokens=9), make.LOOSE) == ()
    assert events_of(timeline, RangeCompacted)


def test_it_does_not_compact_again_and_again() -> None:
    """Trigger differs from target, gains have a minimum, and a breaker is folded from events."""
    timeline = open_timeline(window=4000)
    timeline.user("go")
    at: list[int] = []
    for n in range(60):
        work(timeline, 1, first=n, size=100)
        if any(isinstance(e, RangeCompacted) for e in timeline.render().decisions):
            at.append(n)
    assert len(at) >= 2
    assert min(b - a for a, b in pairwise(at)) >= 5


def test_hopeless_compactions_are_given_up_also_after_a_restart() -> None:
    """The breaker of the row above."""
    store = MemoryStore()
    timeline = open_timeline(store=store, window=2000)
    timeline.note("y" * 4 * 1920)  # pinned: nothing to gain
    timeline.user("hi")
    for _ in range(6):
        timeline.record(response(text("short")))
        timeline.render()
    skipped = len(events_of(timeline, CompactionSkipped))
    assert 0 < skipped <= 3
    timeline.close()
    again = open_timeline(store=store, window=2000)
    again.render()
    assert len(events_of(again, CompactionSkipped)) == skipped


def test_a_warm_cache_is_never_destroyed() -> None:
    """While the cache is warm, the next request strictly extends the last."""
    clock = Clock()
    timeline = open_timeline(
        clock=clock, model=BOUND, policy=steady(prune_tokens_min=1, rounds_intact=1, turns_intact=1)
    )
    last: Rendered | None = None
    for turn in range(6):
        timeline.user(f"turn {turn}")
        for n in range(4):
            contents = (dict(make.SIGNED), tool_use(f"c{turn}.{n}"))
            timeline.record(response(*contents, id=f"r{turn}.{n}"))
            timeline.tool_result(f"c{turn}.{n}", "x" * 40_000 * (n == 1) + "y" * 4000)
            clock.wait(200)
            now = timeline.render()
            assert last is None or is_prefix(last, now)
            last = now


def test_the_cold_moment_is_used_for_one_batch_and_recorded() -> None:
    """Nobody uses the cold moment elsewhere; here pruning happens exactly then."""
    clock = Clock()
    timeline = open_timeline(clock=clock, policy=steady(prune_tokens_min=1, turns_intact=1))
    for turn in range(3):
        timeline.user(f"turn {turn}")
        work(timeline, 2, first=10 * turn, size=500)
        timeline.render()
    clock.wait(400)
    assert timeline.render().tokens < 3 * 2 * 500
    [event] = [e for e in events_of(timeline, BlocksHidden) if e.reason == "expired"]
    assert len(event.hidden) == 4


def test_thinking_is_sent_whole_or_not_at_all() -> None:
    """'thinking blocks cannot be modified', invalid signature: kept or stripped, by model."""
    for model in (make.LOOSE, BOUND):
        timeline = open_timeline(model=model, window=3000)
        timeline.user("go")
        for n in range(20):
            timeline.record(response(dict(make.SIGNED), tool_use(f"c{n}"), id=f"r{n}"))
            timeline.tool_result(f"c{n}", "x" * 600)
            for message in timeline.render().messages:
                kept = [c for c in message["content"] if c["type"] == "thinking"]
                assert all(make.unmarked(c) == make.SIGNED for c in kept)
        assert events_of(timeline, RangeCompacted)


def test_counts_are_corrected_by_what_the_provider_reports() -> None:
    """Tokens undercounted, overflow: calibrated from usage."""
    timeline = open_timeline(counter="model", window=50_000)
    timeline.user("word " * 5000)
    rendered = timeline.render()
    real = 2 * rendered.account.estimated
    timeline.record(response(text("ok"), usage={"input_tokens": real}))
    assert timeline.render().tokens == pytest.approx(real, rel=0.05)


def test_what_arrives_during_a_compaction_stays() -> None:
    """Writes lost while compacting: appends at an expected version; a conflict is tried again."""
    store = MemoryStore()
    other: list[Timeline] = []

    def slow(request: SummaryRequest) -> Summary:
        if not other:
            other.append(open_timeline(store=store, ids=make.Ids("other")))
            other[0].steer("One more thing.")
        return Summary(summary=StructuredSummary(state=str(request.range.cut)))

    timeline = open_timeline(store=store, summarizer=slow)
    timeline.user("go")
    work(timeline, 20)
    rendered = timeline.compact()
    assert "One more thing." in make.text_in(rendered)
    assert len(events_of(timeline, RangeCompacted)) == 1


def test_compaction_deletes_nothing() -> None:
    """Interrupted compaction deletes history: one event is added, none is changed."""
    timeline = open_timeline(window=2000)
    timeline.user("go")
    work(timeline, 20)
    before = [encode_event(event) for _, event in timeline.events()]
    timeline.compact()
    after = [encode_event(event) for _, event in timeline.events()]
    assert after[: len(before)] == before
    assert len(after) <= len(before) + 4


def test_kept_messages_do_not_vanish_at_the_second_compaction() -> None:
    """Coverage over a chain: each range begins where the one before it had cut."""
    timeline = open_timeline(window=3000)
    timeline.user("go")
    for n in range(5):
        work(timeline, 15, first=15 * n, size=60)
        timeline.compact()
    ranges = [(e.start, e.cut) for e in events_of(timeline, RangeCompacted)]
    assert len(ranges) >= 5
    versions = [version for version, _ in blocks_in(timeline)]
    for (_, cut), (start, _) in pairwise(ranges):
        assert start == min(v for v in versions if v >= cut)


def test_open_calls_are_never_folded() -> None:
    """Pending calls folded: the result that comes later still finds its call."""
    timeline = open_timeline(window=2000)
    timeline.user("go")
    work(timeline, 20)
    timeline.record(response(tool_use("slow"), tool_use("fast"), id="open"))
    timeline.tool_result("fast", "done")
    for _ in range(3):
        timeline.steer("hurry " * 20)
    assert timeline.open_calls == ("slow",)
    fold = range_before_tail(timeline.view, context(limit=2000), "forced", 0.0)
    assert fold is not None
    assert "tc:t1.slow.call" in {entry.path for entry in fold.tail}


def test_one_bad_event_does_not_brick_the_session() -> None:
    """Render is total; unknown blocks and events survive a round trip."""
    store = MemoryStore()
    timeline = open_timeline(store=store)
    timeline.user("go")
    bad: list[Event] = [
        OpaqueEvent("BlockAppended", {"id": "x", "at": 1.0, "block": {"type": "user.prompt"}}),
        OpaqueEvent("FromTheFuture", {"id": "y", "at": "?", "deep": [{"a": None}]}),
        make.appended(make.opaque("their.kind", "t1", text=["no text"])),
    ]
    store.append(TimelineId("talk"), bad, expected_version=2)
    again = open_timeline(store=store)
    assert "go" in make.text_in(again.render())
    kept = [event for _, event in again.events()][2:-1]  # without the request itself
    assert [encode_event(event) for event in kept] == [encode_event(event) for event in bad]


def test_a_restored_session_is_the_live_one() -> None:
    """Live == reopened == replayed, byte for byte."""
    store, clock = MemoryStore(), Clock()
    live = open_timeline(store=store, clock=clock, window=2500)
    live.user("go")
    for n in range(12):
        work(live, 3, first=3 * n)
        wanted = make.request_bytes(live.render())
        live.flush()
        reopened = open_timeline(store=store, clock=clock, window=2500)
        copy = MemoryStore()
        copy.append(live.id, [event for _, event in live.events()], expected_version=0)
        replayed = open_timeline(store=copy, clock=clock, window=2500)
        assert make.request_bytes(reopened.render()) == wanted
        assert make.request_bytes(replayed.render()) == wanted


def test_a_summary_and_what_it_excludes_are_one_fact() -> None:
    """The summary is lost but the exclusions stay: they are one event."""
    timeline = open_timeline(window=2000)
    timeline.user("go")
    work(timeline, 20)
    timeline.compact()
    for version in range(timeline.version + 1):
        view = timeline.at(version)
        so_far = [v for v, _ in blocks_in(timeline) if v <= version]
        cut = view.compaction.event.cut if view.compaction else 0
        assert [entry.version for entry in view.entries] == [v for v in so_far if v >= cut]


def test_forks_keep_their_compactions() -> None:
    """A fork inherits what was folded at its version."""
    timeline = open_timeline(window=2000)
    timeline.user("go")
    work(timeline, 20)
    rendered = timeline.compact()
    fork = timeline.fork("fork")
    assert fork.view.compaction
    assert make.flat(fork.render()) == make.flat(rendered)


@for_each("back", ["read", "expand"])
def test_there_is_a_way_back(back: str) -> None:
    """`read(path)` gives every block, `expand()` all of them."""
    timeline = open_timeline()
    timeline.user("go")
    work(timeline, 20)
    originals = {entry.path: entry.block for entry in timeline.view.entries}
    timeline.compact()
    if back == "expand":
        timeline.expand()
        assert {e.path: e.block for e in timeline.view.entries} == originals
    for path, block in originals.items():
        assert encode_block(timeline.read(path)) == encode_block(block)


def test_the_record_of_a_compaction_has_constant_size() -> None:
    """Long id lists in compaction records: two versions instead."""
    sizes: list[int] = []
    for rounds in (30, 300):
        timeline = open_timeline(window=2000)
        timeline.user("go")
        work(timeline, rounds, size=50)
        timeline.compact()
        [event] = events_of(timeline, RangeCompacted)[:1]
        names = len(
            event.state.sources
        )  # of the responses that are folded: a filter of limited size
        assert names < 4_096
        sizes.append(len(encode_event(event)) - len(encode_block(event.summary)) - names)
    assert abs(sizes[1] - sizes[0]) < 20


def test_at_most_four_marks_and_the_next_request_finds_them() -> None:
    """Limits on cache marks exceeded, look-back missed."""
    timeline = open_timeline()
    timeline.user("go")
    last: list[Any] = []
    for n in range(12):
        for m in range(n):
            timeline.record(response(text(f"{n}.{m}"), tool_use(f"c{n}.{m}"), id=f"r{n}.{m}"))
            timeline.tool_result(f"c{n}.{m}", f"result {n}.{m}")
        rendered = timeline.render(
            system="You help.", tools=[{"name": "f", "input_schema": {"type": "object"}}]
        )
        contents = [c for m in rendered.messages for c in m["content"]]
        marks = [i for i, c in enumerate(contents) if "cache_control" in c]
        assert len(marks) <= 3
        assert "cache_control" in rendered.system[-1]
        plain = [make.unmarked(c) for c in contents]
        assert not last or any(_reaches(plain, mark, old) for mark in marks for old in last)
        last = [plain[mark] for mark in marks]


def _reaches(contents: list[Any], mark: int, old: Any) -> bool:
    """Whether a look-back of 20 positions from a mark comes to an older one."""
    positions, before = 0, ""
    for content in reversed(contents[: mark + 1]):
        kind = content["type"]
        positions += kind != before or kind not in {"tool_use", "tool_result"}
        before = kind
        if positions > 20:
            return False
        if content == old:
            return True
    return False


def test_the_probe_agrees_with_the_request() -> None:
    """What decides about a compaction and what is sent are counted by the same functions."""
    timeline = open_timeline(window=100_000)
    timeline.user("go")
    work(timeline, 10)
    rendered = timeline.render()
    within = context(limit=100_000)
    assert total_tokens(timeline.view, within) == rendered.tokens
    exact = context(limit=int(rendered.tokens / 0.9) + 2)
    assert compaction_due(timeline.view, exact) is None


ODD: dict[str, Callable[[Timeline], Any]] = {
    "orphan": lambda t: t.append(make.result("nobody", "asked")),
    "repeated id": lambda t: t.record(response(text(" "), tool_use("same"), tool_use("same"))),
    "blank prompt": lambda t: t.append(make.prompt("\n", "t9")),
    "backward clock": lambda t: t.append(make.said("backwards", "t1"), at=-1e9),
    "unknown kind": lambda t: t.append(make.opaque("x", "t1")),
    "unsigned": lambda t: t.record(response({"type": "thinking", "thinking": "unsigned"})),
}


@for_each("odd", ODD.values(), ids=ODD)
def test_every_repair_is_made_in_the_request_only(odd: Callable[[Timeline], Any]) -> None:
    """The log keeps what it was given; the request is valid."""
    timeline = open_timeline()
    timeline.user("go")
    odd(timeline)
    before = [text_of(block) for _, block in blocks_in(timeline)]
    assert timeline.render().violations == ()
    assert [text_of(block) for _, block in blocks_in(timeline)] == before
