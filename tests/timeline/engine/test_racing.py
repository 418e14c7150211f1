"""Several timelines on one log: what is appended is appended once, in order, whoever is faster.

Facts are repeated until they hold.  Decisions are made anew from what the log then says, and what may
not be repeated (a draft under its version) stays a conflict with the numbers that were found.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AlreadyRecordedError,
    Event,
    EventId,
    LogWindow,
    RangeCompacted,
    Recorded,
    StoreError,
    StructuredSummary,
    SummaryReplaced,
    TimelineId,
    TurnHeader,
    UsageRecorded,
    VersionConflictError,
    text_of,
)
from persistence import EventStore, MemoryStore
from persistence.testing import RecordingStore
from render import Summary, extractive
from tests._builders import (
    blocks_in,
    events_of,
    open_timeline,
    response,
    text,
    text_in,
    tool_use,
)
from tests._sizes import sized
from tests.persistence.contract import STORES, new_store
from timeline import (
    AsyncTimeline,
    Compacted,
    Compacting,
    Hooks,
    Step,
    SummaryRequest,
    Timeline,
)
from timeline.engine._engine import CONFLICTS_MAX, rest_after

WRITERS = 6
EACH = sized(12, 40)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    made = new_store(request, tmp_path)
    yield made
    made.close()


class Rival(MemoryStore):
    """Lets `go_first` run before an append, as often as it was told."""

    times: int = 0
    go_first: Callable[[], object] = staticmethod(lambda: None)
    broken: bool = False
    """Whether the next append is done and then said to have failed."""
    page: int = 1000
    """Events that are read at once: few, where they are large."""

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return super().read(timeline_id, after=after, limit=min(limit, self.page))

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        if self.times:
            self.times -= 1
            times, self.times = self.times, 0
            self.go_first()
            self.times = times
        version = super().append(timeline_id, events, expected_version=expected_version)
        if self.broken:
            self.broken = False
            raise StoreError("the answer was lost")
        return version


@attrs.define
class Rests:
    """Notes how often one had to wait, and takes no time for it."""

    asked: list[int] = attrs.field(factory=list)

    def __call__(self, name: str, conflicts: int) -> float:
        assert name, "who waits has a name, so that two do not wait in step"
        self.asked.append(conflicts)
        return 0.0


def racing(times: int, **options: Any) -> tuple[Timeline, Timeline, Rival, Rests]:
    """A timeline, and another one that appends right before it does, so many times."""
    store, rests = Rival(), Rests()
    timeline, other = (open_timeline(store=store, **options) for _ in range(2))
    timeline._operations.engine.rest, other._operations.engine.rest = rests, lambda *_: 0.0
    timeline.user("go")
    store.times, store.go_first = times, lambda: other.note("I was faster.")
    return timeline, other, store, rests


def texts_in(timeline: Timeline) -> list[str]:
    return [text_of(block) for _, block in blocks_in(timeline) if text_of(block)]


def assert_all_there(log: Sequence[str]) -> None:
    """Each worker's texts once, in its order."""
    count = Counter(log)
    for worker in range(WRITERS):
        expected = [f"{worker}.{n}" for n in range(EACH)]
        assert [said for said in log if said in set(expected)] == expected
        assert all(count[said] == 1 for said in expected)


def assert_live_is_reopened(timeline: Timeline) -> None:
    again = open_timeline(store=timeline._operations.engine.store)
    assert (again.version, text_in(again.render())) == (
        timeline.version,
        text_in(timeline.render()),
    )


def talk(store: EventStore, worker: int) -> None:
    """What one of many does."""
    timeline = open_timeline(store=store, window=3000)
    for n in range(EACH):
        timeline.steer(f"{worker}.{n}")
        timeline.record(response(text("word " * 60), id=f"r{worker}.{n}"))
        assert timeline.render().violations == ()
        if worker == n % WRITERS:
            timeline.compact()
            timeline.hide(timeline.view.entries[-1].block.id)


# ---------------------------------------------------------------- many at once


def test_timelines_in_threads_are_never_refused_and_lose_nothing(store: EventStore) -> None:
    """Whatever they do; and each call of the store could have been made after the other."""
    recording = RecordingStore(store)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda worker: talk(recording, worker), range(WRITERS)))
    assert recording.problems() == []
    assert_all_there(texts_in(open_timeline(store=store)))
    assert_ranges_follow_one_another(open_timeline(store=store))


def assert_ranges_follow_one_another(timeline: Timeline) -> None:
    cut = 1
    for fold in events_of(timeline, RangeCompacted):
        assert fold.start == cut
        folded = [block for v, block in blocks_in(timeline) if v < fold.cut]
        assert fold.summary.digest.blocks == len(folded), "it covers what it says, and all before"
        cut = fold.cut
    assert cut > 1


def test_async_timelines_are_never_refused_and_lose_nothing(store: EventStore) -> None:
    async def talk(worker: int) -> None:
        timeline = await AsyncTimeline.open("talk", store=store, counter="estimate", window=3000)
        for n in range(EACH):
            await timeline.steer(f"{worker}.{n}")
            assert (await timeline.render()).violations == ()

    async def all_of_them() -> None:
        await asyncio.gather(*(talk(worker) for worker in range(WRITERS)))

    asyncio.run(all_of_them())
    assert_all_there(texts_in(open_timeline(store=store)))


def test_a_reader_never_sees_half_a_batch(store: EventStore) -> None:
    stop, seen = Signal(), list[int]()

    def look() -> None:
        while not stop.is_set():
            seen.append(len(store.read(TimelineId("talk"))))
            seen.append(len(store.load_window(TimelineId("talk")).events))

    reader = Thread(target=look)
    reader.start()
    try:
        for number in range(60):
            open_timeline(store=store).user(f"question {number}")  # a header and a prompt
    finally:
        stop.set()
        reader.join()
    assert seen
    assert all(length % 2 == 0 for length in seen)


# ---------------------------------------------------------------- who is slower


@given(times=st.integers(0, 40))
def test_an_append_is_repeated_until_it_holds(times: int) -> None:
    timeline, other, _, _ = racing(times)
    assert timeline.steer("in the end") == 3 + times
    log = texts_in(timeline)
    assert log.count("in the end") == 1
    assert log.count("I was faster.") == times
    assert timeline.version == timeline._operations.engine.store.head(timeline.id)
    assert texts_in(other) == log
    assert_live_is_reopened(timeline)


def test_who_is_slower_waits_each_time() -> None:
    timeline, _, _, rests = racing(20)
    timeline.steer("in the end")
    assert rests.asked == list(range(1, 21))


def test_waits_are_bounded_and_never_in_step() -> None:
    waits = [[rest_after(name, n) for n in range(1, 60)] for name in ("one", "another")]
    assert waits[0] == [rest_after("one", n) for n in range(1, 60)], "nothing is drawn by lot"
    assert all(0 <= wait <= 0.1 for each in waits for wait in each)
    assert all(one != another for one, another in zip(*waits, strict=True))
    assert 5 < sum(rest_after("one", n) for n in range(CONFLICTS_MAX)) < 30


def test_a_render_that_was_overtaken_decides_anew_and_commits() -> None:
    timeline, _, rival, _ = racing(0, window=2000)
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    rival.times = 5
    rendered = timeline.render()
    assert events_of(timeline, RangeCompacted)
    assert text_in(rendered).count("I was faster.") == 5, "what came meanwhile is in the request"
    assert rendered.violations == ()
    reopened = open_timeline(store=rival, window=2000)
    assert text_in(reopened.render()) == text_in(rendered)


def test_whatever_is_done_starts_from_what_others_have_appended(store: EventStore) -> None:
    timeline, other = (open_timeline(store=store) for _ in range(2))
    timeline.user("go")
    timeline.render()
    other.steer("One more thing.")
    assert "One more thing." in text_in(timeline.render())
    other.user("And another.")
    timeline.user("And a last one.")
    turns = [block.turn for _, block in blocks_in(timeline) if isinstance(block, TurnHeader)]
    assert turns == ["t1", "t2", "t3"]
    other.record(response(tool_use("c1", "look"), id="r1"))
    timeline.tool_result("c1", "found")
    assert text_of(timeline.read("tc:t3.c1.result")) == "found"


def test_a_render_whose_hook_appends_through_another_timeline_holds() -> None:
    store = MemoryStore()
    other = open_timeline(store=store)

    def meddle(_: Compacting) -> None:
        other.note("I was faster.")

    hooks = Hooks(on_before_compaction=[meddle])
    timeline = open_timeline(store=store, window=2000, hooks=hooks)
    timeline.user("go")
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    assert "I was faster." in text_in(timeline.render())
    assert events_of(timeline, RangeCompacted)


def test_a_request_made_anew_has_what_others_have_appended_meanwhile() -> None:
    """An observer's note is in the request, and so is what another timeline appends after it."""
    store = MemoryStore()
    other = open_timeline(store=store)

    def watch(_: Step) -> None:
        if timeline.version < 4:
            timeline.note("I have seen it.")
            other.note("So have I.")

    timeline = open_timeline(store=store, observers=[watch])
    timeline.user("go")
    said = text_in(timeline.render())
    assert "I have seen it." in said
    assert "So have I." in said


def test_who_is_overtaken_without_end_is_told_so_in_the_end() -> None:
    """An append, what is looked at before each try, a hide, and a render with decisions."""
    timeline, _, rival, rests = racing(0, window=2000)
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    usage = UsageRecorded(id=EventId(""), at=0.0, uncached=10)
    for tried in (
        lambda: timeline.learn(usage),
        lambda: timeline.steer("in vain"),
        lambda: timeline.hide("ar:t1.user.prompt"),
        timeline.render,
    ):
        rival.times, rests.asked = 10_000, []
        with pytest.raises(VersionConflictError) as caught:
            tried()
        assert caught.value.expected < caught.value.found
        told = f"'talk': somebody else appended first {CONFLICTS_MAX} times in a row"
        assert told in str(caught.value)
        assert "nothing of this call is written. Repeat it when fewer append" in str(caught.value)
        assert CONFLICTS_MAX - 1 <= len(rests.asked) <= CONFLICTS_MAX + 1
    rival.times = 0
    assert timeline.steer("goes on") == rival.head(timeline.id)
    assert "in vain" not in texts_in(timeline)


def test_a_draft_is_not_repeated_and_names_the_versions() -> None:
    timeline, other, _, _ = racing(0, window=2000)
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    draft = timeline.propose()
    version = timeline.version
    other.note("I was faster.")
    with pytest.raises(VersionConflictError, match=f"expected version {version}, found") as caught:
        timeline.commit_draft(draft)
    assert caught.value.found == other.version
    assert not events_of(timeline, RangeCompacted)


# ---------------------------------------------------------------- what depends on the log


def test_prompts_at_the_same_time_open_turns_of_their_own() -> None:
    timeline, other, rival, _ = racing(0)
    rival.times, rival.go_first = 1, lambda: other.user("first")
    timeline.user("second")
    timeline.note("of the second")
    turns = {text_of(block): block.turn for _, block in blocks_in(timeline) if text_of(block)}
    assert turns == {"go": "t1", "first": "t2", "second": "t3", "of the second": "t3"}


def test_what_is_said_while_another_asks_belongs_to_the_turn_that_is_then() -> None:
    timeline, other, rival, _ = racing(0)
    rival.times, rival.go_first = 1, lambda: other.user("next")
    timeline.steer("and")
    assert [block.turn for _, block in blocks_in(timeline)] == ["t1", "t1", "t2", "t2", "t2"]


def test_a_result_that_another_gave_first_is_refused_as_if_nobody_had_raced() -> None:
    timeline, other, rival, _ = racing(0)
    timeline.record(response(tool_use("c1", "look"), id="r1"))
    rival.times, rival.go_first = 1, lambda: other.tool_result("c1", "found")
    with pytest.raises(AlreadyRecordedError, match="the result of call 'c1' is already recorded"):
        timeline.tool_result("c1", "found, too")
    assert texts_in(timeline)[-1] == "found"


def test_a_response_that_another_recorded_first_is_refused_as_if_nobody_had_raced() -> None:
    timeline, other, rival, _ = racing(0)
    answer = response(text("It is 42."), id="r1")
    rival.times, rival.go_first = 1, lambda: other.record(answer)
    with pytest.raises(AlreadyRecordedError, match="response 'r1' is already recorded"):
        timeline.record(answer)
    assert texts_in(timeline).count("It is 42.") == 1


def test_calls_that_another_answers_are_not_closed() -> None:
    timeline, other, rival, _ = racing(0)
    timeline.record(response(tool_use("c1", "look"), tool_use("c2", "look"), id="r1"))
    rival.times, rival.go_first = 1, lambda: other.tool_result("c1", "found")
    assert timeline.close_calls("given up") == ("c2",)
    assert texts_in(timeline)[-2:] == ["found", "given up"]


# ---------------------------------------------------------------- compactions


def long_talk(**options: Any) -> tuple[Timeline, Timeline, Rival]:
    timeline, other, rival, _ = racing(0, window=2000, **options)
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    return timeline, other, rival


def test_of_two_compactions_at_once_one_is_made() -> None:
    for compacts in (Timeline.compact, Timeline.render):
        timeline, other, rival = long_talk()
        rival.times, rival.go_first = 1, other.compact
        rendered = compacts(timeline)
        assert len(events_of(timeline, RangeCompacted)) == 1, (
            "the other's, and it goes on from there"
        )
        assert (rendered.violations, rendered.fits) == ((), True)
        assert text_in(rendered) == text_in(other.render())


def test_a_compaction_is_not_decided_anew_for_each_append_that_was_faster() -> None:
    """It takes longer than an append: what it decided is committed behind what came, once."""
    told: list[Compacted] = []
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> Summary:
        asked.append(request)
        return extractive(request.range)

    hooks = Hooks(on_after_compaction=[told.append])
    timeline, _, rival = long_talk(hooks=hooks, summarizer=summarize)
    rival.times = 50
    rendered = timeline.render()
    [fold] = events_of(timeline, RangeCompacted)
    assert len(asked) == 1
    assert [e.cut for e in rendered.decisions if isinstance(e, RangeCompacted)] == [fold.cut]
    assert [(done.before_tokens > 2000, done.trigger) for done in told] == [(True, "proactive")]
    assert text_in(rendered).count("I was faster.") == 50
    folded = [block for v, block in blocks_in(timeline) if fold.start <= v < fold.cut]
    assert fold.summary.digest.blocks == len(folded), "it covers what it says"
    assert_live_is_reopened(timeline)


def test_what_others_hide_is_not_in_a_summary_that_was_made_meanwhile() -> None:
    timeline, other, rival = long_talk()
    secret = timeline.view.entries[3]
    rival.times, rival.go_first = 3, lambda: other.hide(secret.block.id, replacement="gone")
    timeline.compact()
    assert "step 1 " not in text_in(timeline.render())
    assert_live_is_reopened(timeline)


def test_what_others_hide_does_not_come_back_when_a_summary_is_written_anew() -> None:
    timeline, other, _ = long_talk()
    secret = timeline.view.entries[3]
    timeline.compact()

    def quoting(_: SummaryRequest) -> Summary:
        other.hide(secret.block.id, replacement="gone")
        return Summary(summary=StructuredSummary(facts=("step 1 was xyzzy",)))

    assert not timeline.upgrade_summary(summarizer=quoting)
    assert "xyzzy" not in text_in(timeline.render())


def test_a_summary_of_before_is_not_written_anew() -> None:
    timeline, other, _ = long_talk()
    timeline.compact()

    def late(_: SummaryRequest) -> Summary:
        other.expand()
        return Summary(summary=StructuredSummary(facts=("Too late.",)))

    assert not timeline.upgrade_summary(summarizer=late)
    assert not events_of(timeline, SummaryReplaced)


# ---------------------------------------------------------------- what a store may do


class Contradiction(MemoryStore):
    """Refuses the version that it names itself."""

    def append(self, *_: object, expected_version: int) -> int:
        raise VersionConflictError(expected=expected_version, found=expected_version)


def test_a_store_that_contradicts_itself_is_not_asked_for_ever() -> None:
    with pytest.raises(VersionConflictError):
        open_timeline(store=Contradiction()).user("go")


def test_what_a_store_did_and_said_it_had_not_done_is_seen_and_not_doubled() -> None:
    timeline, _, store, _ = racing(0)
    store.broken = True
    with pytest.raises(StoreError, match="the answer was lost"):
        timeline.steer("said once")
    assert "said once" in text_in(timeline.render()), "it is in the log, so it is shown"
    timeline.steer("said after")
    assert texts_in(timeline)[-2:] == ["said once", "said after"]
    assert_live_is_reopened(timeline)


class Deaf(Rival):
    """Cannot load, for a while."""

    is_deaf: bool = False

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        if self.is_deaf:
            raise StoreError("no answer")
        return super().load_window(timeline_id)


def test_what_is_durable_is_never_said_to_have_failed() -> None:
    store = Deaf()
    timeline, other = (open_timeline(store=store) for _ in range(2))
    timeline.user("go")

    def go_first() -> None:
        other.note("meanwhile")
        store.is_deaf = True

    store.times, store.go_first = 1, go_first
    assert timeline.steer("durable") == 4
    store.is_deaf = False
    assert texts_in(timeline) == ["go", "meanwhile", "durable"]
    assert [text_of(entry.block) for entry in timeline.view.entries][-1] == "durable"


def test_news_are_read_to_their_end_however_short_the_pages_of_a_store_are() -> None:
    timeline, other, rival, _ = racing(0)
    rival.page = 1
    for n in range(5):
        other.steer(f"news {n}")
    assert "news 4" in text_in(timeline.render())
