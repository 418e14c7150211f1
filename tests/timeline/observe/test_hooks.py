"""Hooks: they are told, they may veto, and they can break nothing."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import (
    ArgumentError,
    ClosedError,
    CompactionSkipped,
    Decision,
    RangeCompacted,
    RequestRendered,
    StructuredSummary,
    TextPart,
)
from persistence import MemoryStore
from render import Rendered, Summary, extractive
from tests._builders import (
    LOOSE,
    STEADY,
    CharCounter,
    Clock,
    events_of,
    open_timeline,
    request_bytes,
    text_in,
)
from tests._sizes import PATIENCE
from tests._table import for_each
from tests.timeline.test_timeline import busy
from timeline import AsyncTimeline, Compacted, Compacting, Edit, Hooks, SummaryRequest, Timeline


@attrs.define
class Told:
    """A hook that notes what it was told, and answers what it was given."""

    answer: Any = None
    found: list[Any] = attrs.field(factory=list[Any])

    def __call__(self, argument: Any) -> Any:
        self.found.append(argument)
        return self.answer


def full(hooks: Hooks, window: int = 3600, rounds: int = 20) -> Timeline:
    """A timeline over its trigger and under its limit."""
    return busy(open_timeline(window=window, hooks=hooks, policy=STEADY), rounds)


def limits() -> tuple[int, int]:
    tokens = busy(open_timeline(), 20).render().tokens
    return int(tokens * 1.05), tokens - 10


def test_both_hooks_are_told_the_numbers() -> None:
    before, after = Told(), Told()
    timeline = full(Hooks(on_before_compaction=[before], on_after_compaction=[after]), limits()[0])
    timeline.render()
    [compacting], [compacted] = before.found, after.found
    assert isinstance(compacting, Compacting)
    assert isinstance(compacted, Compacted)
    assert compacting.trigger == compacted.trigger == "proactive"
    assert compacting.before_tokens == compacted.before_tokens
    [event] = events_of(timeline, RangeCompacted)
    assert compacted.after_tokens == event.tokens_after
    assert compacted.compacted_tokens == compacted.before_tokens - compacted.after_tokens
    [proposal] = compacting.draft.proposals
    assert proposal.action == "summarize"
    assert proposal.cut == event.cut


def test_the_second_hook_is_told_after_the_commit() -> None:
    seen: list[int] = []
    timeline: list[Timeline] = []
    hooks = Hooks(
        on_after_compaction=[lambda _: seen.append(len(events_of(timeline[0], RangeCompacted)))]
    )
    timeline.append(full(hooks, limits()[0]))
    timeline[0].render()
    assert seen == [1]


def test_without_a_compaction_nobody_is_told() -> None:
    told = Told()
    timeline = full(Hooks(on_before_compaction=[told], on_after_compaction=[told]), 100_000)
    timeline.render()
    assert told.found == []


def test_a_veto_skips_the_compaction_and_is_recorded() -> None:
    after = Told()
    hooks = Hooks(on_before_compaction=[Told(answer=False)], on_after_compaction=[after])
    timeline = full(hooks, limits()[0])
    rendered = timeline.render()
    assert rendered.fits
    assert [e.reason for e in events_of(timeline, CompactionSkipped)] == ["vetoed"]
    assert after.found == []


def test_a_veto_holds_where_the_prompt_would_not_fit_and_the_request_says_so() -> None:
    timeline = full(Hooks(on_before_compaction=[Told(answer=False)]), limits()[1])
    rendered = timeline.render()
    assert events_of(timeline, RangeCompacted) == []
    assert rendered.cannot_fit is not None
    assert (rendered.cannot_fit.reason, rendered.fits) == ("over_limit", False)
    assert "a hook vetoed" in rendered.cannot_fit.advice


@for_each("answer", [None, True, 0, "no"])
def test_only_false_is_a_veto(answer: Any) -> None:
    timeline = full(Hooks(on_before_compaction=[Told(answer=answer)]), limits()[0])
    timeline.render()
    assert len(events_of(timeline, RangeCompacted)) == 1


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    told = Told()
    hooks = Hooks(on_before_compaction=[broken, told], on_after_compaction=[broken, told])
    timeline = full(hooks, limits()[0])
    plain = full(Hooks(), limits()[0])
    with caplog.at_level(logging.ERROR, logger="foldline"):
        rendered = timeline.render()
    assert rendered.content_hash == plain.render().content_hash
    assert len(told.found) == 2
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


@for_each("when", ["on_before_compaction", "on_after_compaction"])
def test_a_coroutine_function_needs_an_async_timeline(when: str) -> None:
    async def hook(_: object) -> bool:
        raise AssertionError

    with pytest.raises(ArgumentError, match="AsyncTimeline"):
        open_timeline(hooks=Hooks(**{when: [hook]}))


def test_what_turns_out_to_be_async_in_a_sync_timeline_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hook(_: object) -> bool:
        raise AssertionError

    def begin(compacting: Compacting) -> Any:
        return hook(compacting)

    timeline = full(Hooks(on_before_compaction=[begin]), limits()[0])
    with caplog.at_level(logging.ERROR, logger="foldline"):
        timeline.render()
    assert "AsyncTimeline" in caplog.text
    assert len(events_of(timeline, RangeCompacted)) == 1


# Hooks, observers and summarisers that use the timeline which called them: what they append is in the request,
# nothing waits for ever, and a reopened timeline shows the same.


_T = TypeVar("_T")

WORD = "NEVER DELETE db-2"
WINDOW = 3000
SECONDS = PATIENCE

PLACES = ("before", "after", "observer", "summarizer")
"""Where other people's code is called in a render."""

DEEDS: dict[str, Callable[[Timeline], object]] = {
    "user": lambda t: t.user(WORD),
    "steer": lambda t: t.steer(WORD),
    "note": lambda t: t.note(WORD),
    "notice": lambda t: t.notice(WORD),
    "attach": lambda t: t.attach("a.txt", TextPart(text=WORD)),
    "record": lambda t: t.record({"id": "m", "content": [{"type": "text", "text": WORD}]}),
    "hide": lambda t: (t.steer(WORD), t.hide("ar:t1.user.prompt")),
    "render": lambda t: (t.steer(WORD), t.render()),
    "compact": lambda t: (t.note(WORD), t.compact()),
    "flush": lambda t: (t.steer(WORD), t.flush()),
    "raise": lambda t: (t.steer(WORD), 1 / 0),
}
"""What it may do to the timeline; each of it says `WORD`."""


@attrs.define
class Worker:
    """Foreign code: does its deed the first time that it is called, or each time."""

    deed: Callable[[Timeline], object]
    in_thread: bool = False
    always: bool = False
    timeline: Timeline | None = None
    called: int = 0

    def __call__(self, argument: Any) -> Any:
        self.called += 1
        if self.timeline and (self.called == 1 or self.always):
            if self.in_thread:
                thread = threading.Thread(target=self._quiet, args=(self.timeline,), daemon=True)
                thread.start()
                thread.join(SECONDS)
                assert not thread.is_alive(), "it waits for the lock of who waits for it"
            else:
                self.deed(self.timeline)
        return extractive(argument.range) if isinstance(argument, SummaryRequest) else None

    def _quiet(self, timeline: Timeline) -> None:
        with suppress(ZeroDivisionError):
            self.deed(timeline)


def options_of(place: str, worker: Any) -> dict[str, Any]:
    match place:
        case "before":
            return {"hooks": Hooks(on_before_compaction=[worker])}
        case "after":
            return {"hooks": Hooks(on_after_compaction=[worker])}
        case "observer":
            return {"observers": [worker]}
        case _:
            return {"summarizer": worker}


def crowded(store: MemoryStore, place: str, worker: Any, questions: int = 30) -> Timeline:
    timeline = open_timeline(store=store, window=WINDOW, **options_of(place, worker))
    for number in range(questions):
        timeline.user(f"Question {number}: " + "what is in the feed? " * 20)
    return timeline


def reopened(store: MemoryStore) -> Rendered:
    return open_timeline(store=store, window=WINDOW).snapshot().render()


@for_each("in_thread", [False, True])
@for_each("deed", DEEDS)
@for_each("place", PLACES)
def test_what_it_appends_is_in_the_request(place: str, deed: str, in_thread: bool) -> None:  # noqa: FBT001
    store, worker = MemoryStore(), Worker(DEEDS[deed], in_thread)
    timeline = worker.timeline = crowded(store, place, worker)
    rendered = timeline.render()
    assert worker.called >= 1
    assert WORD in text_in(rendered)
    assert rendered.fits
    assert rendered.violations == ()
    timeline.flush()
    assert timeline.version == store.head(timeline.id)
    assert timeline.snapshot().render().content_hash == reopened(store).content_hash
    assert len(events_of(timeline, RangeCompacted)) >= 1


@for_each("place", PLACES)
def test_one_that_appends_each_time_comes_to_an_end(place: str) -> None:
    store, worker = MemoryStore(), Worker(DEEDS["steer"], always=True)
    timeline = worker.timeline = crowded(store, place, worker)
    timeline.render()
    timeline.render()
    timeline.flush()
    assert worker.called < 100
    assert timeline.snapshot().render().content_hash == reopened(store).content_hash


@for_each("place", PLACES)
def test_one_request_is_noted_for_one_render(place: str) -> None:
    store, worker = MemoryStore(), Worker(DEEDS["steer"])
    timeline = worker.timeline = crowded(store, place, worker)
    timeline.render()
    timeline.flush()
    assert len(events_of(timeline, RequestRendered)) == 1


def test_one_that_closes_the_timeline_gets_a_typed_error() -> None:
    store, worker = MemoryStore(), Worker(lambda timeline: timeline.close())
    timeline = worker.timeline = crowded(store, "before", worker)
    with pytest.raises(ClosedError):
        timeline.render()


# The async one.


async def acrowded(worker: Any, place: str) -> AsyncTimeline:
    timeline = await AsyncTimeline.open(
        "talk",
        window=WINDOW,
        counter=CharCounter(),
        model=LOOSE,
        policy=STEADY,
        clock=Clock(),
        **options_of(place, worker),
    )
    for number in range(30):
        await timeline.user(f"Question {number}: " + "what is in the feed? " * 20)
    return timeline


@for_each("where", ["task", "child", "other"])
@for_each("place", PLACES)
def test_the_async_one_never_waits_for_ever(place: str, where: str) -> None:
    """Neither for its own task, nor for a task that it has made, nor for one that was there before."""

    async def run() -> str:
        box: dict[str, AsyncTimeline] = {}
        jobs: asyncio.Queue[asyncio.Future[int]] = asyncio.Queue()

        async def other() -> None:
            job = await jobs.get()
            job.set_result(await box["t"].steer(WORD))

        async def hook(argument: Any) -> Any:
            if "done" not in box and "t" in box:
                box["done"] = box["t"]
                if where == "task":
                    await box["t"].steer(WORD)
                elif where == "child":
                    await asyncio.gather(box["t"].steer(WORD), box["t"].note(WORD))
                else:
                    job: asyncio.Future[int] = asyncio.get_running_loop().create_future()
                    await jobs.put(job)
                    await job
            return extractive(argument.range) if isinstance(argument, SummaryRequest) else None

        worker = asyncio.create_task(other())
        box["t"] = await acrowded(hook, place)
        rendered = await asyncio.wait_for(box["t"].render(), SECONDS)
        worker.cancel()
        await box["t"].close()
        return text_in(rendered)

    assert WORD in asyncio.run(run())


def test_a_render_that_is_cancelled_in_a_hook_leaves_the_timeline_free() -> None:
    async def run() -> None:
        reached = asyncio.Event()

        async def hook(_: object) -> None:
            reached.set()
            await asyncio.Event().wait()

        timeline = await acrowded(hook, "before")
        task = asyncio.create_task(timeline.render())
        await reached.wait()
        assert await asyncio.wait_for(timeline.steer(WORD), SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.wait_for(timeline.note(WORD), SECONDS)
        await timeline.close()

    asyncio.run(run())


# Edits.


def edited(edit: Edit) -> tuple[Timeline, Rendered]:
    def hook(_: object) -> Edit:
        return edit

    timeline = crowded(MemoryStore(), "before", hook)
    return timeline, timeline.render()


def test_a_hook_says_what_is_kept() -> None:
    timeline, rendered = edited(Edit(keep_from="ar:t28.user.prompt"))
    assert timeline.view.entries[0].path == "ar:t28.user.prompt"
    assert rendered.fits


def test_a_hook_writes_the_summary_and_nobody_else_is_asked() -> None:
    own = StructuredSummary(state="All feeds were read.")
    timeline, rendered = edited(Edit(summary=own))
    assert "All feeds were read." in text_in(rendered)
    [folded] = events_of(timeline, RangeCompacted)
    assert folded.summary.summary.state == "All feeds were read."


def test_a_hook_changes_what_the_summariser_wrote() -> None:
    def decided(summary: StructuredSummary) -> StructuredSummary:
        return StructuredSummary(state=f"Seen: {bool(summary.state or summary.task)}")

    _, rendered = edited(Edit(summary=decided))
    assert "Seen: " in text_in(rendered)


@pytest.mark.parametrize(
    "edit",
    [
        Edit(keep_from=1),
        Edit(keep_from=10_000),
        Edit(keep_from="ar:t99.user.prompt"),
        Edit(keep_from=3.5),  # type: ignore[arg-type]  # a user's mistake, as below
        Edit(keep_from="ar:t2.user.prompt"),  # keeps more than fits
        Edit(summary="a text"),  # type: ignore[arg-type]  # the same
        Edit(summary=lambda _: "a text"),
        Edit(summary=lambda _: 1 / 0),
        Edit(summary=StructuredSummary(facts="abc", decisions=(1,))),  # type: ignore[arg-type]  # the same
    ],
)
def test_an_edit_that_cannot_be_is_logged_and_changes_nothing(
    edit: Edit, caplog: pytest.LogCaptureFixture
) -> None:
    plain, _ = edited(Edit())
    with caplog.at_level("WARNING", logger="foldline"):
        timeline, rendered = edited(edit)
    assert "ignored" in caplog.text
    assert rendered.fits
    assert timeline.view.entries[0].path == plain.view.entries[0].path


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    key = draw(st.one_of(st.none(), st.integers(-3, 90), st.sampled_from(("ar:t9.user.prompt",))))
    size = draw(st.sampled_from((0, 10, 20_000)))
    text = "word " * size
    written = StructuredSummary(state=text, constraints=(text,), facts=(text,))
    decided = StructuredSummary(decisions=(Decision(decision=text),))
    match draw(st.integers(0, 4)):
        case 0:
            return Edit(keep_from=key)
        case 1:
            return Edit(keep_from=key, summary=written)
        case 2:
            return Edit(keep_from=key, summary=_same)
        case 3:
            return Edit(keep_from=key, summary=partial(_answer, decided))
        case _:
            return Edit(keep_from=key, summary=partial(_answer, None))


def _answer(answer: _T, _: object) -> _T:
    return answer


def _same(summary: StructuredSummary) -> StructuredSummary:
    return summary


@given(chosen=st.lists(edits(), min_size=1, max_size=2))
def test_no_edit_breaks_what_holds_of_every_compaction(chosen: list[Edit]) -> None:
    """Budget, validity, coverage, and live as reopened."""
    store = MemoryStore()
    hooks = Hooks(on_before_compaction=[partial(_answer, edit) for edit in chosen])
    timeline = open_timeline(store=store, window=WINDOW, hooks=hooks)
    for number in range(30):
        timeline.user(f"Question {number}: " + "what is in the feed? " * 20)
        if number % 10 == 9:
            rendered = timeline.render()
            assert rendered.fits
            assert rendered.violations == ()
    folds = events_of(timeline, RangeCompacted)
    event("folds", payload=len(folds))
    view = timeline.view
    cut = view.compaction.event.cut if view.compaction else 0
    appended = [v for v, e in timeline.events() if hasattr(e, "block")]
    assert [entry.version for entry in view.entries] == [v for v in appended if v >= cut]
    assert request_bytes(timeline.snapshot().render()) == request_bytes(reopened(store))
    assert not [e for e in events_of(timeline, CompactionSkipped) if e.reason == "failed"]


def test_a_summary_that_was_answered_is_not_asked_for_twice() -> None:
    """Though the summariser itself has made the timeline move on."""
    asked: list[int] = []
    box: dict[str, Timeline] = {}

    def writes(request: SummaryRequest) -> Summary:
        asked.append(request.range.cut)
        box["t"].steer(WORD)
        return extractive(request.range)

    box["t"] = crowded(MemoryStore(), "summarizer", writes)
    assert WORD in text_in(box["t"].render())
    assert len(asked) == 1
