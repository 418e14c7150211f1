"""Compactions as data: proposed, kept as JSON, committed once or refused, undone."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import attrs
import msgspec
import pytest

from blocks import (
    ArtifactId,
    BlocksHidden,
    DataError,
    Envelope,
    Event,
    MisuseError,
    RangeCompacted,
    StoreError,
    StructuredSummary,
    SummaryPrepared,
    SummaryRequested,
    TimelineId,
    VersionConflictError,
)
from persistence import ArtifactDescription, MemoryArtifacts, MemoryStore, Requester
from render import CompactionDraft, Policy, Rendered, Summary
from tests import _builders as make
from tests._builders import CharCounter, Clock, events_of, open_timeline, steady
from tests.timeline.test_timeline import busy
from timeline import AsyncTimeline, Compacted, Compacting, Hooks, Options, SummaryRequest

TALK = TimelineId("talk")
WINDOW = 5_000
LADDER: Policy = steady(
    rungs=("externalize", "summarize", "clear", "drop"),
    externalize_tokens=100,
    pointer_tokens=10,
    page_tokens=8_000,
)


class Driven:
    """An async timeline, driven from outside its loop: what holds for one timeline holds for both."""

    def __init__(self, runner: asyncio.Runner, timeline: AsyncTimeline) -> None:
        self._runner, self._timeline = runner, timeline

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._timeline, name)
        if not callable(found):
            return found
        return lambda *given, **more: self._runner.run(_awaited(found(*given, **more)))


async def _awaited(found: Any) -> Any:
    return await found


Opener = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens a timeline of either kind."""
    if request.param == "sync":
        yield lambda **more: open_timeline(**{"window": WINDOW, "policy": LADDER, **more})
        return
    with asyncio.Runner() as runner:

        def open_async(**more: Any) -> Driven:
            options: Options = {
                "counter": CharCounter(),
                "model": make.LOOSE,
                "policy": LADDER,
                "window": WINDOW,
                "clock": Clock(),
                "validate": True,
                **more,  # type: ignore[typeddict-item]
            }
            return Driven(runner, runner.run(AsyncTimeline.open("talk", **options)))

        yield open_async


def reasons(events: Sequence[tuple[int, Event]]) -> list[str]:
    """What was done, in order."""
    return [
        event.reason if isinstance(event, BlocksHidden) else type(event).__name__
        for _, event in events
    ]


def kept(draft: CompactionDraft) -> CompactionDraft:
    """The draft as it comes back from a file."""
    return CompactionDraft.from_json(draft.to_json())


# Proposed, committed.


def test_a_draft_is_proposed_kept_and_committed(opened: Opener) -> None:
    timeline = busy(opened(store=MemoryStore()))
    draft = timeline.propose()
    assert timeline.version == draft.version
    assert (draft.timeline, draft.policy, draft.limit) == ("talk", "default", WINDOW)
    assert draft.rungs[:2] == ("externalize", "summarize")
    assert timeline.commit_draft(kept(draft)) == timeline.version > draft.version
    assert reasons(timeline.events(after=draft.version))[:2] == ["externalized", "RangeCompacted"]
    rendered: Rendered = timeline.render()
    assert rendered.tokens == draft.tokens_after < draft.tokens_before


def test_one_event_has_the_tokens_around_all_rungs(opened: Opener) -> None:
    timeline = busy(opened(store=MemoryStore()))
    draft = timeline.propose()
    assert len(draft.rungs) > 1
    timeline.commit_draft(draft)
    told = [
        (type(event), event.tokens_before, event.tokens_after)
        for _, event in timeline.events(after=draft.version)
        if isinstance(event, RangeCompacted | BlocksHidden) and event.tokens_before
    ]
    assert told == [(RangeCompacted, draft.tokens_before, draft.tokens_after)]


def test_where_nothing_is_folded_the_last_hide_has_them(opened: Opener) -> None:
    policy = attrs.evolve(LADDER, rungs=("externalize", "clear"))
    timeline = busy(opened(store=MemoryStore(), policy=policy))
    draft = timeline.propose()
    timeline.commit_draft(draft)
    hides = [e for _, e in timeline.events(after=draft.version) if isinstance(e, BlocksHidden)]
    assert [e.tokens_before for e in hides[:-1]] == [0] * (len(hides) - 1)
    assert (hides[-1].tokens_before, hides[-1].tokens_after) == (
        draft.tokens_before,
        draft.tokens_after,
    )
    known = timeline.view.events_since_cut[-1][1]
    assert isinstance(known, BlocksHidden)
    assert (known.tokens_before, known.tokens_after) == (draft.tokens_before, draft.tokens_after)


def test_proposing_decides_nothing(opened: Opener) -> None:
    timeline = busy(opened(store=MemoryStore()))
    one, two = timeline.propose(), timeline.propose()
    assert one == two
    assert timeline.version == one.version


def test_where_there_is_nothing_to_do_the_draft_is_empty(opened: Opener) -> None:
    timeline = opened(store=MemoryStore())
    timeline.user("hello")
    draft = timeline.propose()
    assert draft.proposals == ()
    assert draft.tokens_before == draft.tokens_after > 0
    with pytest.raises(DataError, match="has no proposal"):
        timeline.commit_draft(draft)


def test_a_second_commit_changes_nothing(opened: Opener) -> None:
    store = MemoryStore()
    timeline = busy(opened(store=store))
    draft = timeline.propose()
    version = timeline.commit_draft(draft)
    assert timeline.commit_draft(kept(draft)) == version
    timeline.user("go on")
    assert timeline.commit_draft(draft) == timeline.version == version + 2
    assert opened(store=store).commit_draft(draft) == version + 2
    assert store.head(TALK) == version + 2


def test_two_who_have_the_same_draft_commit_it_once(opened: Opener) -> None:
    store = MemoryStore()
    one = busy(opened(store=store))
    two = opened(store=store)
    draft = one.propose()
    assert one.commit_draft(draft) == two.commit_draft(draft) == store.head(TALK)
    assert len(events_of(open_timeline(store=store), RangeCompacted)) == 1
    assert one.render().content_hash == two.render().content_hash


# Refused.


def test_what_was_appended_meanwhile_refuses_the_draft_and_nothing_is_written(
    opened: Opener,
) -> None:
    store = MemoryStore()
    timeline = busy(opened(store=store))
    draft = timeline.propose()
    other = open_timeline(store=store)
    other.user("somebody else")
    head = store.head(TALK)
    with pytest.raises(VersionConflictError) as refused:
        timeline.commit_draft(draft)
    assert (refused.value.expected, refused.value.found) == (draft.version, head)
    assert store.head(TALK) == head
    again = timeline.propose()
    assert again.version == head
    assert timeline.commit_draft(again) > head


def test_one_s_own_appends_refuse_it_too(opened: Opener) -> None:
    timeline = busy(opened(store=MemoryStore()))
    draft = timeline.propose()
    timeline.steer("wait")
    with pytest.raises(VersionConflictError):
        timeline.commit_draft(draft)
    assert timeline.version == draft.version + 1


def test_a_draft_of_another_timeline_is_refused(opened: Opener) -> None:
    draft = busy(open_timeline("other", window=WINDOW, policy=LADDER)).propose()
    timeline = busy(opened(store=MemoryStore()))
    assert draft.version == timeline.version
    with pytest.raises(DataError, match="'other'"):
        timeline.commit_draft(draft)
    stolen = msgspec.structs.replace(draft, timeline=TALK)
    with pytest.raises(DataError):
        timeline.commit_draft(stolen)
    assert timeline.version == draft.version


def test_a_draft_whose_range_is_another_is_refused(opened: Opener) -> None:
    timeline = busy(opened(store=MemoryStore(), policy=steady(rungs=("summarize",))))
    draft = timeline.propose()
    [fold] = draft.proposals
    changed = msgspec.structs.replace(fold, source_hash="0" * 64)
    with pytest.raises(DataError):
        timeline.commit_draft(msgspec.structs.replace(draft, proposals=(changed,)))
    assert timeline.version == draft.version


# The artifact store.


class Full(MemoryArtifacts):
    """Takes nothing."""

    def put(self, content: bytes, about: ArtifactDescription) -> ArtifactId:  # noqa: ARG002 -- a fake
        raise StoreError("the disk is full")


def test_a_store_that_does_not_take_the_content_refuses_the_draft(opened: Opener) -> None:
    timeline = busy(opened(artifacts=Full()))
    draft = timeline.propose()
    assert "externalize" in draft.rungs
    with pytest.raises(MisuseError, match="artifact store"):
        timeline.commit_draft(draft)
    assert timeline.version == draft.version


def test_in_a_render_the_content_stays_and_another_rung_does_it(opened: Opener) -> None:
    timeline = busy(opened(artifacts=Full()), rounds=40)
    rendered = timeline.render()
    done = reasons(timeline.events())
    assert "externalized" not in done
    assert "RangeCompacted" in done
    assert rendered.fits


def test_what_is_restricted_stays_where_no_key_is_and_does_not_keep_the_rest(
    opened: Opener,
) -> None:
    timeline = busy(opened(store=MemoryStore()))
    known = Envelope(sensitivity="restricted")
    timeline.record(make.response(make.tool_use("secret", "bank"), id="secret"))
    timeline.tool_result("secret", "account 12345\n" * 200, envelope=known)
    for n in range(30, 60):
        timeline.record(make.response(make.tool_use(f"toolu_{n}", "read"), id=f"r{n}"))
        timeline.tool_result(f"toolu_{n}", f"def f{n}(): ...\n" * 40)
    draft = timeline.propose()
    moved = [p.path for p in draft.proposals if p.action == "externalize"]
    assert len(moved) > 20
    assert "tc:t1.secret.result" not in moved
    assert timeline.commit_draft(draft) > draft.version


def test_what_was_externalized_into_another_store_is_named_when_it_is_forgotten(
    opened: Opener,
) -> None:
    store, artifacts = MemoryStore(), MemoryArtifacts()
    timeline = busy(opened(store=store, artifacts=artifacts))
    draft = timeline.propose()
    first, second = [p for p in draft.proposals if p.action == "externalize"][:2]
    timeline.commit_draft(draft)
    done = opened(store=store).forget(first.path)
    assert (done.artifacts, done.may_remain[0]) == (
        0,
        f"artifact {first.artifact}, if it is in another store",
    )
    assert opened(store=store, artifacts=artifacts).forget(artifact=first.artifact).artifacts == 1
    done = opened(store=store, artifacts=artifacts).forget(second.path)
    assert (done.artifacts, any("artifact" in place for place in done.may_remain)) == (1, False)


def test_without_an_artifact_store_nothing_is_externalized(opened: Opener) -> None:
    timeline = busy(opened(artifacts=None))
    assert "externalize" not in timeline.propose().rungs


@attrs.define
class Crashing:
    """A store that fails once, at the next commit of a compaction."""

    store: MemoryStore = attrs.field(factory=MemoryStore)
    is_armed: bool = False

    def append(self, timeline: TimelineId, events: Sequence[Event], **more: Any) -> int:
        if self.is_armed and any(isinstance(event, BlocksHidden) for event in events):
            self.is_armed = False
            raise OSError("gone")
        return self.store.append(timeline, events, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def test_a_crash_between_storing_and_committing_leaves_only_unreferenced_content(
    opened: Opener,
) -> None:
    crashing = Crashing()
    timeline = busy(opened(store=crashing))
    draft = timeline.propose()
    crashing.is_armed = True
    with pytest.raises(OSError, match="gone"):
        timeline.commit_draft(draft)
    artifacts = crashing.store.artifacts()
    stored = {about.id for about in artifacts.list(Requester(TALK))}
    assert stored == {p.artifact for p in draft.proposals if p.artifact}
    assert crashing.store.head(TALK) == draft.version
    reopened = opened(store=crashing)
    assert reopened.propose() == draft
    assert reopened.commit_draft(draft) > draft.version
    assert {about.id for about in artifacts.list(Requester(TALK))} == stored


# Threads.


def test_threads_with_one_draft_commit_it_once() -> None:
    store = MemoryStore()
    draft = busy(open_timeline(store=store, window=WINDOW, policy=LADDER)).propose()
    others = [open_timeline(store=store, window=WINDOW, policy=LADDER) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: others[n % 4].commit_draft(draft), range(16)))
    assert len(set(found)) == 1
    assert len(events_of(open_timeline(store=store), RangeCompacted)) == 1


def test_threads_that_append_and_compact_lose_nothing() -> None:
    store = MemoryStore()
    timeline = busy(open_timeline(store=store, window=WINDOW, policy=LADDER))
    before = timeline.version
    committed: list[CompactionDraft] = []

    def work(number: int) -> None:
        mine = open_timeline(store=store, window=WINDOW, policy=LADDER)
        for step in range(5):
            mine.steer(f"{number}.{step}")
            with suppress(VersionConflictError, DataError):
                draft = mine.propose()
                mine.commit_draft(draft)
                committed.append(draft)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    after = open_timeline(store=store, window=WINDOW, policy=LADDER)
    said = [str(getattr(b, "text", "")) for v, b in make.blocks_in(after) if v > before]
    assert sorted(said) == sorted(f"{n}.{step}" for n in range(4) for step in range(5))
    assert committed
    assert after.render().violations == ()


# Who is told.


@attrs.define
class Told:
    """A hook that notes what it was told."""

    found: list[Any] = attrs.field(factory=list[Any])

    def __call__(self, argument: Any) -> None:
        self.found.append(argument)


def test_a_hook_sees_the_draft_and_may_veto_it(opened: Opener) -> None:
    told = Told()
    timeline = busy(opened(hooks=Hooks(on_before_compaction=[told])))
    timeline.compact()
    [compacting] = told.found
    assert isinstance(compacting, Compacting)
    assert isinstance(compacting.draft, CompactionDraft)
    assert compacting.draft.rungs[:2] == ("externalize", "summarize")
    assert compacting.before_tokens == compacting.draft.tokens_before


def test_whoever_commits_a_draft_has_decided_and_is_told_afterwards(opened: Opener) -> None:
    before, after = Told(), Told()
    hooks = Hooks(on_before_compaction=[before], on_after_compaction=[after])
    timeline = busy(opened(hooks=hooks))
    draft = timeline.propose()
    timeline.commit_draft(draft)
    [compacted] = after.found
    assert before.found == []
    assert isinstance(compacted, Compacted)
    assert (compacted.before_tokens, compacted.after_tokens) == (
        draft.tokens_before,
        draft.tokens_after,
    )


def test_a_summary_that_was_paid_for_is_kept_with_the_draft(opened: Opener) -> None:
    calls: list[SummaryRequest] = []

    class Writer:
        name = "some-model"

        def __call__(self, request: SummaryRequest) -> Summary:
            from blocks import Provenance

            calls.append(request)
            spent = Provenance(source_hash=request.range.source_hash, model=self.name)
            return Summary(summary=StructuredSummary(state="All read."), provenance=spent)

    timeline = busy(opened(summarizer=Writer()))
    draft = timeline.propose()
    assert calls == []
    version = timeline.commit_draft(draft)
    done = [event for _, event in timeline.events(after=draft.version)]
    assert [type(event) for event in done[:2]] == [SummaryRequested, SummaryPrepared]
    assert "All read." in make.text_in(timeline.render())
    assert timeline.commit_draft(draft) >= version
    assert len(calls) == 1


# Undone.


def visible(timeline: Any) -> list[tuple[str, str | None]]:
    return [(entry.path, entry.replacement) for entry in timeline.view.entries]


@pytest.mark.parametrize(
    "rungs",
    [
        ("externalize", "summarize", "clear", "drop"),
        ("externalize", "clear", "drop"),
        ("clear", "drop"),
        ("drop",),
    ],
)
def test_after_an_undo_everything_is_visible_again(opened: Opener, rungs: tuple[Any, ...]) -> None:
    clock, store = Clock(), MemoryStore()
    policy = attrs.evolve(LADDER, rungs=rungs, prune_block_tokens=10, target_ratio=0.1)
    timeline = busy(opened(store=store, clock=clock, policy=policy))
    before = visible(timeline)
    assert {replacement for _, replacement in before} == {None}
    clock.wait(1)
    timeline.commit_draft(timeline.propose())
    assert visible(timeline) != before
    timeline.expand()
    assert visible(timeline) == before
    assert visible(open_timeline(store=store)) == before
    with pytest.raises(MisuseError, match="nothing to expand"):
        timeline.expand()


def test_what_had_been_hidden_before_stays_hidden(opened: Opener) -> None:
    clock = Clock()
    policy = attrs.evolve(LADDER, rungs=("drop",), target_ratio=0.1)
    timeline = busy(opened(clock=clock, policy=policy))
    timeline.hide("tc:t1.toolu_2.result", replacement="[a secret]")
    before = visible(timeline)
    timeline.commit_draft(timeline.propose())
    assert ("tc:t1.toolu_2.result", "") in visible(timeline)
    timeline.expand()
    assert visible(timeline) == before


def test_what_somebody_hid_afterwards_stays_hidden(opened: Opener) -> None:
    policy = attrs.evolve(LADDER, rungs=("externalize",))
    timeline = busy(opened(policy=policy))
    timeline.commit_draft(timeline.propose())
    timeline.hide("tc:t1.toolu_2.result", replacement="[a secret]")
    timeline.expand()
    hidden = {path: text for path, text in visible(timeline) if text is not None}
    assert hidden == {"tc:t1.toolu_2.result": "[a secret]"}


def test_an_undo_takes_back_the_newest_compaction_first(opened: Opener) -> None:
    clock = Clock()
    timeline = busy(opened(clock=clock))
    first = visible(timeline)
    timeline.commit_draft(timeline.propose())
    clock.wait(1)
    for n in range(20, 40):
        timeline.record(make.response(make.tool_use(f"toolu_{n}", "read"), id=f"r{n}"))
        timeline.tool_result(f"toolu_{n}", f"def f{n}(): ...\n" * 40)
    second = visible(timeline)
    timeline.commit_draft(timeline.propose())
    timeline.expand()
    assert visible(timeline) == second
    timeline.expand()
    assert visible(timeline)[: len(first)] == first
    assert {replacement for _, replacement in visible(timeline)} == {None}
