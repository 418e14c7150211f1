"""The invariants of the render pipeline, over generated logs: one property each."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs
from hypothesis import event, example, given
from hypothesis import strategies as st

from blocks import (
    AssistantThinking,
    Block,
    BlocksHidden,
    BlocksRestored,
    CompactionSkipped,
    Event,
    Note,
    RangeCompacted,
    RangeExpanded,
    StructuredSummary,
    SummaryReplaced,
    TimelineId,
    TurnHeader,
    label_of,
    path_at,
    path_of,
    path_stem,
    text_of,
)
from persistence import MemoryStore, Requester
from render import (
    CompactionDraft,
    FoldRange,
    Place,
    Rendered,
    Summary,
    SummaryRoom,
    View,
    range_before_tail,
    total_tokens,
    validate_request,
)
from render.summary._written import LASTING
from tests import _builders as make
from tests._builders import (
    blocks_in,
    context,
    events_of,
    flat,
    quotations,
    request_bytes,
    shown,
    steady,
)
from tests._sizes import sized
from tests.strategies import Play, Step, answers, settings, steps
from timeline import SummaryRequest

REWRITES = (BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced)
MARK = re.compile(r"mark_\d{4}:")


def played(all_steps: list[Step], options: dict[str, Any]) -> Play:
    play = Play(options).run(all_steps)
    kinds = {type(e).__name__ for _, e in play.timeline.events()}
    reasons = {e.reason for e in events_of(play.timeline, BlocksHidden)}
    for kind in ("RangeCompacted", "BlocksHidden"):
        event(kind, payload=kind in kinds)
    for reason in ("externalized", "cleared", "dropped"):
        event(reason, payload=reason in reasons)
    return play


def seen(view: View, play: Play) -> bytes:
    """The request that a view is shown as, in bytes."""
    fixed = context(
        model=play.options["model"], policy=play.options["policy"], limit=play.options["window"]
    )
    return request_bytes(shown(view, fixed))


# 1


@given(steps(), settings())
def test_1_coverage(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Every block is exactly one of: visible, hidden with a replacement, folded, carried."""
    timeline = played(all_steps, options).timeline
    view = timeline.view
    cut = view.compaction.event.cut if view.compaction else 0
    head = view.compaction.head.entries[:-1] if view.compaction else ()
    logged = [version for version, _ in blocks_in(timeline)]
    kept = [entry.version for entry in view.entries]
    carried = [entry.version for entry in head]
    assert kept == [version for version in logged if version >= cut]
    assert set(carried) <= {version for version in logged if version < cut}
    assert len(carried) == len(set(carried))


@given(steps(), settings())
def test_1_coverage_is_what_the_model_sees(all_steps: list[Step], options: dict[str, Any]) -> None:
    """What counts as visible is in the request, and what is hidden is not.

    A summary may quote what is hidden, as it quotes what is folded; and what stands for the result of a
    call may say what the call was about, unless that is hidden on request.
    """
    play = played(all_steps, options)
    sent = seen(play.timeline.view, play).decode()
    behind = sent.split("</summary-")[-1]
    stand_ins = "".join(entry.replacement or "" for entry in play.timeline.view.entries)
    for entry in play.timeline.view.entries:
        silent = entry.place in {Place.SILENT, Place.ORPHAN}
        if silent or isinstance(entry.block, AssistantThinking | TurnHeader):
            continue
        for mark in MARK.findall(text_of(entry.block)):
            told = entry.hidden_as != "requested" and mark in stand_ins
            visible = entry.replacement is None or mark in entry.replacement or told
            assert (mark in (sent if visible else behind)) == visible, entry


@given(steps(), settings())
def test_1_coverage_leaves_no_gap_between_compactions(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """Each compaction folds from where the one before it in force had cut."""
    in_force: list[tuple[int, RangeCompacted]] = []
    timeline = played(all_steps, options).timeline
    blocks = [version for version, _ in blocks_in(timeline)]
    for version, fact in timeline.events():
        if isinstance(fact, RangeExpanded):
            in_force = [each for each in in_force if each[0] != fact.compaction]
        if isinstance(fact, RangeCompacted):
            cut = in_force[-1][1].cut if in_force else 0
            assert fact.start == min(b for b in blocks if b >= cut)
            assert fact.start < fact.cut <= version
            assert fact.summary.start == fact.start
            assert fact.summary.cut == fact.cut
            in_force.append((version, fact))


# 2


@given(steps(), settings())
def test_2_validity(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Every request obeys the rules, however broken the log."""
    play = played([*all_steps, ("render",)], options)
    for request in play.requests:
        assert request.rendered.violations == ()
        sent = request.rendered.anthropic(max_tokens=1000)
        assert validate_request(sent, options["model"]) == ()


# 3


@given(steps(), settings())
def test_3_budget(all_steps: list[Step], options: dict[str, Any]) -> None:
    """A request is within its limit, or says that it cannot be."""
    play = played([*all_steps, ("render",)], options)
    for request in play.requests:
        over = request.rendered.tokens > options["window"]
        assert request.rendered.fits == (not over)
        found = request.rendered.cannot_fit
        assert (found is not None and found.reason == "over_limit") == over


@given(steps(), settings())
def test_3_budget_is_given_up_only_when_nothing_is_left_to_fold(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """A request that does not fit could not have been made to fit by folding more."""
    play = played([*all_steps, ("render",)], options)
    if play.requests[-1].rendered.fits:
        return
    event("does not fit")
    forced = play.timeline.compact()
    assert forced.tokens >= play.requests[-1].rendered.tokens * 0.9


# 4


@given(steps(), settings())
def test_4_determinism_of_two_renders(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Rendering twice gives the same bytes."""
    play = played([*all_steps, ("render",)], options)
    again = play.timeline.render()
    assert request_bytes(again) == request_bytes(play.requests[-1].rendered)
    assert again.content_hash == play.requests[-1].rendered.content_hash


@given(steps(), settings())
def test_4_determinism_live_is_reopened_is_replayed(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """A view that grew, one from the store, and one from a copy of the events: equal bytes."""
    play = played(all_steps, options)
    live = play.timeline
    live.flush()
    reopened = play.open()
    copied = MemoryStore()
    events = [fact for _, fact in live.events()]
    copied.append(TimelineId("talk"), events, expected_version=0)
    replayed = play.open(store=copied)
    wanted = seen(live.view, play)
    assert seen(reopened.view, play) == wanted
    assert seen(replayed.view, play) == wanted
    assert reopened.view.state == live.view.state
    assert request_bytes(replayed.render()) == request_bytes(live.render())


@given(steps(), settings())
def test_4_determinism_a_kill_at_any_point_changes_no_request(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """Processes of which each is killed after one step hand out what a single one does."""
    live, killed = played(all_steps, options), Play(options)
    for step in all_steps:
        killed.timeline = killed.open()
        killed.do(step)
    requests = [
        [(each.version, request_bytes(each.rendered)) for each in play.requests]
        for play in (live, killed)
    ]
    assert requests[0] == requests[1]
    assert list(live.timeline.events()) == list(killed.timeline.events())


# 5


@given(steps(hides=False), settings())
def test_5_prefix(all_steps: list[Step], options: dict[str, Any]) -> None:
    """As long as nothing is rewritten, each request begins with the whole one before it.

    A clip rewrites nothing: it happens before a block is shown for the first time.
    """
    play = played([*all_steps, ("render",)], options)
    play.timeline.flush()
    facts = dict(play.timeline.events())
    for one, two in zip(play.requests, play.requests[1:], strict=False):
        between = [facts[v] for v in range(one.version + 1, two.version)]
        if any(_rewrites(fact) for fact in between):
            continue
        event("a prefix was checked")
        before, after = _settled(one.rendered), _settled(two.rendered)
        assert after[: len(before)] == before


def _settled(rendered: Rendered) -> list[tuple[str, str]]:
    """The content blocks, without calls of the provider's own tools that it paused at.

    Once somebody speaks before the provider went on, such a call can no longer be sent.
    """
    return [found for found in flat(rendered) if '"server_tool_use"' not in found[1]]


def _rewrites(fact: Event) -> bool:
    if isinstance(fact, BlocksHidden):
        return fact.reason != "clipped"
    return isinstance(fact, REWRITES)


@given(steps(hides=False), settings())
def test_5_prefix_while_the_cache_is_warm(all_steps: list[Step], options: dict[str, Any]) -> None:
    """While the provider's cache is warm, only a full window and the user rewrite history."""
    waits = [step for step in all_steps if step[0] not in {"wait", "compact"}]
    play = played([*waits, ("render",)], {**options, "window": 200_000})
    for one, two in zip(play.requests, play.requests[1:], strict=False):
        before, after = _settled(one.rendered), _settled(two.rendered)
        assert after[: len(before)] == before


# 6


@given(steps(), settings())
def test_6_verbatim_notes(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Notes are in every request, byte for byte, through any number of compactions."""
    shielded = [step for step in all_steps if step[0] not in {"hide", "restore"}]
    play = played([*shielded, ("render",), ("compact",)], options)
    sent = [c["text"] for m in play.requests[-1].rendered.messages for c in _texts(m)]
    for _, block in blocks_in(play.timeline):
        if isinstance(block, Note):
            assert any(text == block.text for each in sent for _, text in quotations(each, "note"))


def _texts(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (content for content in message["content"] if content["type"] == "text")


@given(steps(), settings(), st.integers(0, 3))
def test_6_verbatim_task(all_steps: list[Step], options: dict[str, Any], more: int) -> None:
    """The original task is in every request, as long as it fits the share of what the user said."""
    shielded = [step for step in all_steps if step[0] not in {"hide", "restore"}]
    again = [("round", ("c1",), ("c1",), 20), ("compact",)] * more
    play = played([*shielded, ("render",), *again], {**options, "window": 3000})
    task = next(text_of(block) for _, block in blocks_in(play.timeline) if text_of(block))
    for request in play.requests:
        assert json.dumps(task)[1:-1] in request_bytes(request.rendered).decode()


@attrs.define
class Noting:
    """A summariser that finds one more constraint and one more decision each time."""

    calls: int = 0

    def __call__(self, _: SummaryRequest) -> Summary:
        self.calls += 1
        return Summary(
            summary=StructuredSummary(
                task="the task",
                constraints=(f"constraint {self.calls} holds",),
                facts=tuple(f"fact {self.calls}.{n} " + "and more " * 20 for n in range(9)),
            )
        )


@given(steps(), settings(), st.integers(2, 6))
def test_6_verbatim_constraints(all_steps: list[Step], options: dict[str, Any], more: int) -> None:
    """What one summary calls a constraint is in every later one, whatever else the limit forces out;
    and what a later one calls so joins it, as long as there is room."""
    noting = Noting()
    again = [("round", ("c1", "c2"), ("c2", "c1"), 80), ("compact",)] * more
    kept = [step for step in all_steps if step[0] != "expand"]
    play = played([*kept, *again], {**options, "summarizer": noting})
    room = SummaryRoom.of(context(policy=options["policy"], limit=options["window"]))
    constraints: tuple[str, ...] = ()
    for fact in events_of(play.timeline, RangeCompacted):
        found = fact.summary.summary.constraints
        assert found[: len(constraints)] == constraints
        one_more = sum(map(room.size, (*constraints, f"constraint {noting.calls} holds")))
        if one_more <= int(LASTING["constraints"] * room.history):
            assert len(found) == len(constraints) + 1
        constraints = found
    event("compactions", payload=len(constraints))


# 7


@given(steps(), settings())
def test_7_pairing(all_steps: list[Step], options: dict[str, Any]) -> None:
    """A call is answered by what was recorded for it, or reported as interrupted."""
    play = played([*all_steps, ("render",)], options)
    recorded = answers(play.timeline)
    for request in play.requests:
        for use, answer in _pairs(request.rendered.messages):
            marks = MARK.findall(json.dumps(answer["content"]))
            owners = {
                block.call_id
                for block in (r for found in recorded.values() for r in found)
                if set(MARK.findall(text_of(block))) & set(marks)
            }
            assert len(owners) <= 1
            assert all(_same_call(owner, use["id"]) for owner in owners)


def _pairs(messages: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    uses: dict[str, dict[str, Any]] = {}
    for message in messages:
        for content in message["content"]:
            if content["type"] == "tool_use":
                uses[content["id"]] = content
            if content["type"] == "tool_result":
                yield uses[content["tool_use_id"]], content


def _same_call(call_id: str, wire_id: str) -> bool:
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"
    return wire_id == plain or wire_id.startswith(f"{plain}_")


@given(steps(), settings())
def test_7_pairing_outlives_every_cut(all_steps: list[Step], options: dict[str, Any]) -> None:
    """A result that answered its call still does after any compaction, or both are folded."""
    play = played(all_steps, options)
    paired: set[int] = set()
    for version in range(1, play.timeline.version + 1):
        view = play.timeline.at(version)
        now = {e.version for e in view.entries if e.place is Place.RESULT}
        left = {e.version for e in view.entries}
        assert not (paired & left) - now, version
        paired |= now


CUT_TAIL: Final[list[Step]] = [
    *(("user", 2), ("round", ("c1",), ("c1",), 20), ("render",)),
    *(("round", ("c1",), ("c1",), 20), ("respond", False, (("text", 20),))),
    *(("result", "c1", "text", 20), ("wait", 1.0)),
]
"""A log whose fold cuts a result in the tail that it keeps."""


# 8


@given(steps(), settings())
@example(
    CUT_TAIL, {"window": 300, "policy": steady(keep_ratio=0.2, clip_ratio=0.1), "model": make.LOOSE}
)
def test_8_idempotence(all_steps: list[Step], options: dict[str, Any]) -> None:
    """The same view under the same policy gives the same range, live or reopened."""
    play = played(all_steps, options)
    play.timeline.flush()
    fixed = context(limit=options["window"], policy=options["policy"], model=options["model"])
    views = play.timeline.view, play.timeline.view, play.open().view
    one, two, three = (_content(range_before_tail(view, fixed, "forced")) for view in views)
    assert one == two == three


def _content(fold: FoldRange | None) -> list[Any]:
    """What a range says; entries that it cuts are objects of its own."""
    if fold is None:
        return []
    kept = [(entry.version, entry.replacement) for entry in fold.tail]
    return [
        fold.start,
        fold.cut,
        fold.carried,
        fold.cuts,
        kept,
        fold.tokens_before,
        fold.source_hash,
    ]


@given(steps(), settings())
def test_8_a_draft_commits_once(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Two who compact the same log at the same version: one range, one compaction."""
    play = played(all_steps, options)
    play.timeline.flush()
    one, two = play.open(), play.open()
    one.compact()
    two.compact()
    ranges = [(e.start, e.cut) for e in events_of(one, RangeCompacted)]
    if not events_of(one, RangeExpanded):
        assert len(ranges) == len(set(ranges))


@given(steps(), settings())
def test_8_equal_views_give_equal_drafts(all_steps: list[Step], options: dict[str, Any]) -> None:
    """The ladder proposes the same from a live view and a reopened one, byte for byte."""
    play = played(all_steps, options)
    play.timeline.flush()
    draft = play.timeline.propose()
    again, reopened = play.timeline.propose(), play.open().propose()
    assert again.to_json() == draft.to_json() == reopened.to_json()
    assert CompactionDraft.from_json(draft.to_json()) == draft
    assert draft.digest == reopened.digest


@given(steps(), settings())
def test_8_a_draft_does_what_it_says_and_only_once(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """A draft that went through JSON gives the request that it promised; again, it gives nothing."""
    play = played(all_steps, options)
    play.timeline.flush()
    draft = CompactionDraft.from_json(play.timeline.propose().to_json())
    if not draft.proposals:
        return
    version = play.timeline.commit_draft(draft)
    done = [e for _, e in play.timeline.events(after=draft.version)]
    if not any(isinstance(e, CompactionSkipped) for e in done):
        event("a draft was carried out")
        fixed = context(model=options["model"], policy=options["policy"], limit=options["window"])
        assert total_tokens(play.timeline.view, fixed) == draft.tokens_after
    assert play.timeline.commit_draft(draft) == version == play.timeline.version
    assert play.open().commit_draft(draft) == version


# 9


@given(steps(), settings())
def test_9_recovery(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Every block ever appended can be read by its paths; every path that is shown is right."""
    timeline = played([*all_steps, ("render",)], options).timeline
    ordinals: dict[str, int] = {}
    by_version: dict[int, Block] = {}
    for version, block in blocks_in(timeline):
        stem = path_stem(block)
        ordinals[stem] = ordinals.get(stem, 0) + 1
        by_version[version] = block
        assert timeline.read(path_of(block, ordinals[stem])) == block
        assert timeline.read(path_at(block, version)) == block
        assert timeline.read(label_of(version)) == block
    head = timeline.view.compaction.head.entries if timeline.view.compaction else ()
    for entry in (*head, *timeline.view.entries):
        assert timeline.read(entry.path) == by_version.get(entry.version, entry.block)


@given(steps(), settings())
def test_9_recovery_of_what_was_moved(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Every pointer in the log leads to the very bytes that it stands for."""
    play = played([*all_steps, ("compact",)], options)
    originals = {block.id: block for _, block in blocks_in(play.timeline)}
    for moved in events_of(play.timeline, BlocksHidden):
        for hidden in moved.hidden:
            if hidden.artifact and moved.reason == "externalized":
                event("an artifact was read")
                found = play.store.artifacts().read(hidden.artifact, Requester(TimelineId("talk")))
                assert found == text_of(originals[hidden.block]).encode(errors="surrogatepass")
                assert hidden.artifact in hidden.replacement


# 10


@given(steps(), settings(), st.integers(0, 10_000))
def test_10_fork(all_steps: list[Step], options: dict[str, Any], where: int) -> None:
    """A fork at a version is shown as its parent was at that version, but with what is hidden on request now."""
    play = played(all_steps, options)
    play.timeline.flush()
    version = 1 + where % play.timeline.version
    fork = play.timeline.fork("fork", at=version)
    past, now = play.timeline.at(version), play.timeline.view.state.withheld
    there = {block.id for found, block in blocks_in(play.timeline) if found <= version}
    assert set(past.state.withheld) == set(fork.view.state.withheld) == there.intersection(now)
    assert seen(fork.view, play) == seen(past, play)
    assert seen(play.open("fork").view, play) == seen(fork.view, play)


@given(steps(), settings())
def test_10_the_log_shows_again_what_was_sent(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    """At the version of each request, the log still renders to that very request, with what was hidden then."""
    play = played([*all_steps, ("render",), ("flush",)], options)
    for request in play.requests:
        again = play.timeline.render_at(request.version - 1, hidden=True)
        assert request_bytes(again) == request_bytes(request.rendered)


# 11


@given(steps(), settings())
@example(
    CUT_TAIL, {"window": 300, "policy": steady(keep_ratio=0.2, clip_ratio=0.1), "model": make.LOOSE}
)
def test_11_undo(all_steps: list[Step], options: dict[str, Any]) -> None:
    """An undone compaction leaves what there was without it, whatever its rungs did."""
    play = played(all_steps, options)
    play.timeline.flush()
    play.clock.wait(1.0)
    draft = play.timeline.propose()
    before, state = seen(play.timeline.view, play), _shown_as(play.timeline.view)
    if not draft.proposals:
        return
    play.timeline.commit_draft(draft)
    if isinstance(play.timeline.events(after=draft.version)[-1][1], CompactionSkipped):
        return
    event("a draft was undone", payload="+".join(draft.rungs))
    play.timeline.expand()
    assert _shown_as(play.timeline.view) == state
    assert _without_thinking(seen(play.timeline.view, play)) == _without_thinking(before)
    assert _shown_as(play.open().view) == state


def _shown_as(view: View) -> list[tuple[int, str | None]]:
    head = view.compaction.head.entries if view.compaction else ()
    return [(entry.version, entry.replacement) for entry in (*head, *view.entries)]


def _without_thinking(request: bytes) -> list[Any]:
    """What had been thought about the compacted prompt is bound to it."""
    messages = json.loads(request)["messages"]
    return [
        {k: v for k, v in content.items() if k != "cache_control"}
        for message in messages
        for content in message["content"]
        if "thinking" not in content["type"]
    ]


# 12: see also `test_total.py`


@given(steps(), settings())
def test_12_total(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Render raises on no log, at none of its versions: usually at every fourth, counted back from the end."""
    timeline = played([*all_steps, ("render",)], options).timeline
    for version in range(timeline.version, -1, -sized(4, 1)):
        timeline.render_at(version)
