"""The timeline as people use it: append, render, look, go back."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantCompletion,
    BlockAppended,
    BlocksHidden,
    ClosedError,
    Envelope,
    ImagePart,
    InvalidRequestError,
    MisuseError,
    OpaqueBlock,
    RangeCompacted,
    RangeExpanded,
    RequestRendered,
    TextPart,
    TimelineForked,
    TimelineId,
    ToolCall,
    ToolResult,
    UnknownPathError,
    UnknownTimelineError,
    UsageRecorded,
    VersionConflictError,
)
from persistence import ArtifactDescription, ArtifactStore, MemoryStore, open_artifacts
from render.stages._budget import is_cold
from tests import _builders as make
from tests._builders import (
    Clock,
    blocks_in,
    events_of,
    open_timeline,
    response,
    steady,
    text,
    tool_use,
)
from tests._table import for_each
from timeline import Timeline


def kinds(timeline: Timeline) -> list[str]:
    return [type(block).__name__ for _, block in blocks_in(timeline)]


def busy(timeline: Timeline, rounds: int = 20) -> Timeline:
    """A timeline in the middle of a long turn."""
    timeline.user("Read all the files. You must not change any.")
    for n in range(rounds):
        timeline.record(response(tool_use(f"toolu_{n}", "read", path=f"src/f{n}.py"), id=f"r{n}"))
        timeline.tool_result(f"toolu_{n}", f"def f{n}(): ...\n" * 40)
    return timeline


# Appending.


def test_a_user_opens_a_turn_and_what_follows_belongs_to_it() -> None:
    timeline = open_timeline()
    timeline.user("one")
    timeline.record(response(text("hi")))
    timeline.user("two", ImagePart(data="aGk="))
    timeline.steer("quick")
    timeline.followup("thanks")
    timeline.note("n")
    timeline.plan("p")
    timeline.attach("a.txt", TextPart(text="x"))
    assert [(block.turn, type(block).__name__) for _, block in blocks_in(timeline)] == [
        ("t1", "TurnHeader"), ("t1", "UserPrompt"), ("t1", "AssistantCompletion"),
        ("t2", "TurnHeader"), ("t2", "UserPrompt"), ("t2", "UserSteer"), ("t2", "UserFollowup"),
        ("t2", "Note"), ("t2", "Plan"), ("t2", "UserAttachment"),
    ]  # fmt: skip


def test_versions_count_events_and_one_call_is_one_commit() -> None:
    timeline = open_timeline()
    assert timeline.version == 0
    assert timeline.user("hi") == 2
    assert timeline.append(make.said("a"), make.said("b")) == 4
    assert timeline.version == 4


def test_recording_a_response_keeps_its_blocks_and_its_usage() -> None:
    timeline = open_timeline()
    timeline.user("hi")
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}
    contents = [
        make.SIGNED,
        text("I look."),
        tool_use("toolu_1", "ls"),
        {"type": "server_tool_use"},
    ]
    timeline.record(response(*contents, id="msg_1", usage=usage))
    assert kinds(timeline)[2:] == [
        "AssistantThinking",
        "AssistantCompletion",
        "ToolCall",
        "OpaqueBlock",
    ]
    assert timeline.open_calls == ("toolu_1",)
    [recorded] = events_of(timeline, UsageRecorded)
    assert (recorded.uncached, recorded.cache_read, recorded.output) == (5, 7, 3)
    assert recorded.model == "loose"


def test_a_call_cut_off_by_max_tokens_is_discarded() -> None:
    """Its input may be cut anywhere."""
    timeline = open_timeline()
    timeline.user("hi")
    timeline.record(response(text("so"), tool_use("a"), tool_use("b"), stop_reason="max_tokens"))
    assert timeline.open_calls == ("a",)
    timeline.record(response(text("only text"), stop_reason="max_tokens"))
    assert kinds(timeline)[-1] == "AssistantCompletion"


@for_each("given", [None, [], "{}", 5, {"a": math.nan}])
def test_arguments_that_are_no_object_become_one(given: Any) -> None:
    timeline = open_timeline()
    timeline.user("hi")
    timeline.record(response({"type": "tool_use", "id": "a", "name": "f", "input": given}))
    [call] = [block for _, block in blocks_in(timeline) if isinstance(block, ToolCall)]
    assert isinstance(call.input, dict)
    assert timeline.render().violations == ()


def test_what_is_no_response_is_refused() -> None:
    with pytest.raises(MisuseError, match="response"):
        open_timeline().record(5)


def test_a_response_object_is_read_through_its_own_method() -> None:
    class Message:
        def to_dict(self) -> dict[str, Any]:
            return response(text("from an object"))

    timeline = open_timeline()
    timeline.record(Message())
    assert kinds(timeline) == ["AssistantCompletion"]


def test_tool_output_may_be_text_parts_or_content_blocks() -> None:
    timeline = open_timeline()
    timeline.user("hi")
    timeline.record(response(tool_use("a"), tool_use("b"), tool_use("c"), id="r"))
    envelope = Envelope(outcome="partial", key_fields={"exit_code": 2})
    timeline.tool_result("a", "plain", envelope=envelope)
    timeline.tool_result("b", [TextPart(text="x"), {"type": "text", "text": "y"}], is_error=True)
    timeline.tool_result("c", "")
    one, two, three = [b for _, b in blocks_in(timeline) if isinstance(b, ToolResult)]
    assert one.envelope == envelope
    assert two.parts == (TextPart(text="x"), TextPart(text="y"))
    assert (two.is_error, two.envelope.outcome) == (True, "failure")
    assert three.parts == ()
    with pytest.raises(MisuseError):
        timeline.tool_result("a", [5])  # type: ignore[list-item]


def test_a_late_result_belongs_to_the_turn_of_its_call_and_leads_nobody_back() -> None:
    timeline = open_timeline()
    timeline.user("one")
    timeline.record(response(tool_use("a"), id="r1"))
    timeline.render()
    timeline.user("two")
    timeline.tool_result("a", "late")
    timeline.record(response(text("ok"), id="r2"))
    timeline.steer("go on")
    turns = [(type(b).__name__, b.turn) for _, b in blocks_in(timeline)][-3:]
    assert turns == [("ToolResult", "t1"), ("AssistantCompletion", "t2"), ("UserSteer", "t2")]
    timeline.user("three")
    assert timeline.view.turn == "t3"


def test_calls_that_nobody_answers_are_closed_in_one_commit() -> None:
    timeline = open_timeline()
    timeline.user("go")
    timeline.record(response(tool_use("a"), tool_use("b"), tool_use("c"), id="r1"))
    timeline.tool_result("b", "done")
    before = timeline.version
    assert timeline.close_calls("given up") == ("a", "c")
    assert timeline.version == before + 2
    closed = [block for _, block in blocks_in(timeline)[-2:] if isinstance(block, ToolResult)]
    assert [(r.call_id, r.is_error, r.envelope.outcome) for r in closed] == [
        ("a", True, "partial"),
        ("c", True, "partial"),
    ]
    assert make.text_in(timeline.render()).count("given up") == 2
    assert timeline.close_calls() == (), "they are closed"


def test_a_call_that_a_request_has_shown_as_interrupted_is_closed_no_more() -> None:
    """The model knows already; a second answer would come after it had gone on."""
    timeline = open_timeline()
    timeline.user("go")
    timeline.record(response(tool_use("a"), tool_use("b"), id="r1"))
    sent = timeline.render()
    timeline.flush()
    before = timeline.version
    assert timeline.close_calls() == ()
    assert timeline.version == before
    assert make.request_bytes(timeline.render()) == make.request_bytes(sent)
    timeline.record(response(tool_use("c"), id="r2"))
    assert timeline.close_calls() == ("c",)


def test_nothing_to_append_is_misuse() -> None:
    with pytest.raises(MisuseError, match="at least one block"):
        open_timeline().append()


@for_each("at", [math.nan, math.inf])
def test_a_time_that_is_none_is_misuse(at: float) -> None:
    with pytest.raises(MisuseError, match="seconds since the epoch"):
        open_timeline().append(make.said("x"), at=at)


def test_a_timeline_needs_a_name_and_a_window() -> None:
    with pytest.raises(MisuseError):
        Timeline.open(" ")
    with pytest.raises(MisuseError):
        open_timeline(window=0)


# Hiding.


def test_hide_and_restore_by_path_or_id() -> None:
    timeline = busy(open_timeline(), 2)
    [result_id] = [b.id for _, b in blocks_in(timeline) if isinstance(b, ToolResult)][:1]
    timeline.hide("tc:t1.toolu_1.result", result_id, replacement="gone")
    shown = make.text_in(timeline.render())
    assert shown.count("gone") == 2
    assert "def f0" not in shown
    timeline.restore("tc:t1.toolu_0.result")
    assert "def f0" in make.text_in(timeline.render())
    assert [e.reason for e in events_of(timeline, BlocksHidden)] == ["requested"]


def test_what_is_hidden_without_a_text_says_that_somebody_asked_for_it() -> None:
    timeline = busy(open_timeline(), 1)
    timeline.hide("tc:t1.toolu_0.result")
    assert "[hidden on request]" in make.text_in(timeline.render())


def test_every_kind_of_block_can_be_hidden_and_the_request_stays_valid() -> None:
    timeline = busy(open_timeline(), 1)
    timeline.append(
        make.thought("t1"), make.said("said", "t1"), make.note("note", "t1"),
        make.opaque("their.kind", "t1", author="user", text="theirs"),
        make.attachment("f", "attached", "t1"), make.notice("noticed", "t1"),
    )  # fmt: skip
    for entry in timeline.view.entries:
        timeline.hide(entry.block.id, replacement=f"[{entry.version}]")
        assert timeline.render().violations == ()
    shown = make.text_in(timeline.render())
    for word in ("def f0", "said", "note\n", "theirs", "attached", "noticed", "Read all"):
        assert word not in shown


def test_an_unknown_path_is_misuse() -> None:
    timeline = busy(open_timeline(), 1)
    for act in (timeline.hide, timeline.restore, timeline.read):
        with pytest.raises(UnknownPathError):
            act("ar:t9.user.prompt")


# Reading back.


def test_everything_can_be_read_back_after_it_was_folded() -> None:
    timeline = busy(open_timeline())
    timeline.note("a note")
    wanted = {entry.path: entry.block for entry in timeline.view.entries}
    timeline.compact()
    assert timeline.view.compaction
    assert {path: timeline.read(path) for path in wanted} == wanted


def test_a_summary_can_be_read_by_its_path() -> None:
    timeline = busy(open_timeline())
    timeline.compact()
    [event] = events_of(timeline, RangeCompacted)
    assert timeline.read("su:t1.conv.range.summary") == event.summary


def test_paths_go_on_counting_across_a_cut() -> None:
    timeline = open_timeline()
    timeline.user("go")
    for n in range(3):
        timeline.note(f"note {n}")
        timeline.attach("same.txt", TextPart(text=f"file {n}"))
        busy_round(timeline, n)
        timeline.compact()
    assert timeline.view.compaction
    for n, suffix in enumerate(("", ".2", ".3")):
        assert getattr(timeline.read(f"ar:t1.react.note{suffix}"), "text", "") == f"note {n}"
        assert timeline.read(f"fi:t1.same.txt{suffix}").part.text == f"file {n}"  # type: ignore[union-attr]


def busy_round(timeline: Timeline, n: int) -> None:
    timeline.record(response(tool_use(f"toolu_{n}", "read"), id=f"r{n}"))
    timeline.tool_result(f"toolu_{n}", "x " * 4000)
    timeline.record(response(text(f"read {n}"), id=f"s{n}"))


def test_the_log_and_the_past() -> None:
    timeline = open_timeline()
    timeline.user("one")
    timeline.render()
    timeline.user("two")
    assert [v for v, _ in timeline.events()] == [1, 2, 3, 4, 5]
    assert [v for v, _ in timeline.events(after=3)] == [4, 5]
    assert len(timeline.at(2).entries) == 2
    assert "two" not in make.text_in(timeline.render_at(2))
    assert timeline.at(0).entries == []
    with pytest.raises(MisuseError):
        timeline.at(99)


def test_looking_at_the_past_records_nothing() -> None:
    timeline = busy(open_timeline(), 3)
    before = timeline.version
    timeline.render_at(3)
    timeline.at(3)
    assert timeline.version == before
    assert timeline.view.state.touched_at == 0.0


# Rendering.


def test_a_request_is_a_fact_in_the_log_before_it_is_handed_out() -> None:
    store = MemoryStore()
    timeline = open_timeline(store=store)
    timeline.user("hi")
    timeline.render()
    assert timeline.version == store.head(timeline.id) == 3
    timeline.note("x")
    timeline.render()
    assert timeline.version == timeline.flush() == 5
    assert len(events_of(timeline, RequestRendered)) == 2


def test_a_request_that_is_handed_out_again_is_recorded_again_when_that_refreshes_the_cache() -> (
    None
):
    clock = Clock()
    timeline = open_timeline(clock=clock)
    timeline.user("hi")
    for _ in range(100):
        timeline.render()
    assert timeline.version == 3
    clock.wait(29.9)
    timeline.render()
    assert timeline.version == 3
    clock.wait(0.1)
    timeline.render()
    assert timeline.version == 4
    clock.wait(-1000.0)
    timeline.render()
    assert timeline.view.state.touched_at == clock(), "a clock that goes back is believed"
    timeline.render(system="Another.")
    assert timeline.version == 6


def test_the_first_request_after_a_reopen_honours_the_recorded_ttl(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "log.duckdb"
    with open_timeline(store=path, clock=clock, policy=steady(ttl_seconds=3600.0)) as timeline:
        busy(timeline, 20)
        timeline.render()
    clock.wait(1000)
    hasty = steady(ttl_seconds=60.0, prune_tokens_min=1, prune_block_tokens=50, rounds_intact=1)
    with open_timeline(store=path, clock=clock, policy=hasty) as again:
        assert not again.render().decisions
    clock.wait(3600)
    with open_timeline(store=path, clock=clock, policy=hasty) as late:
        assert late.render().decisions


def test_a_window_that_is_full_is_compacted_on_the_way_and_told_in_the_result() -> None:
    timeline = busy(open_timeline(window=2000), 20)
    rendered = timeline.render()
    assert any(isinstance(event, RangeCompacted) for event in rendered.decisions)
    assert rendered.tokens <= 2000
    assert timeline.render().decisions == ()


def test_compact_again_when_there_is_nothing_left_changes_nothing() -> None:
    timeline = busy(open_timeline())
    first = timeline.compact()
    second = timeline.compact()
    assert len(events_of(timeline, RangeCompacted)) == 1
    assert make.flat(first) == make.flat(second)


def test_calibration_follows_what_the_provider_reports() -> None:
    timeline = busy(open_timeline(), 3)
    estimated = timeline.render().tokens
    usage = {"input_tokens": 2 * estimated}
    timeline.record(response(text("ok"), usage=usage))
    known = timeline.view.state.calibrations["loose"]
    assert known.prefix == pytest.approx(estimated), "one sample only tells what nothing explains"
    assert known.samples == 1


def test_is_cold_is_told_by_the_clock_not_by_the_log() -> None:
    clock = Clock()
    timeline = busy(open_timeline(clock=clock), 1)
    timeline.render()
    assert not is_cold(timeline.view, make.context(now=clock.now))
    clock.wait(-10_000)
    timeline.user("the clock went backwards")
    assert not timeline.render().decisions


# Expand and fork.


def test_expand_brings_everything_back() -> None:
    timeline = busy(open_timeline())
    before = make.flat(timeline.render())
    timeline.compact()
    timeline.expand()
    assert make.flat(timeline.render())[: len(before)] == before
    assert timeline.view.compaction is None
    with pytest.raises(MisuseError):
        timeline.expand()
    assert len(events_of(timeline, RangeExpanded)) == 1


def test_expand_undoes_only_the_latest() -> None:
    timeline = busy(open_timeline())
    timeline.compact()
    one = make.flat(timeline.render())
    for n in range(30, 40):
        busy_round(timeline, n)
    timeline.compact()
    timeline.expand()
    assert make.flat(timeline.render())[: len(one)] == one


def test_a_fork_goes_its_own_way() -> None:
    store = MemoryStore()
    timeline = busy(open_timeline(store=store), 3)
    fork = timeline.fork("other", at=4)
    fork.user("elsewhere")
    assert "elsewhere" not in make.text_in(timeline.render())
    assert len(blocks_in(fork)) == 6
    [event] = events_of(fork, TimelineForked)
    assert (event.parent, event.version) == ("talk", 4)
    again = open_timeline("other", store=store)
    assert make.flat(again.render()) == make.flat(fork.render())


def test_a_fork_after_a_compaction_inherits_it_and_before_it_does_not() -> None:
    timeline = busy(open_timeline())
    before = timeline.version
    timeline.compact()
    assert timeline.fork("after").view.compaction
    assert timeline.fork("before", at=before).view.compaction is None


def test_forking_what_is_not_there_is_refused() -> None:
    timeline = busy(open_timeline(), 1)
    timeline.fork("taken")
    with pytest.raises(VersionConflictError):
        timeline.fork("taken")
    with pytest.raises(MisuseError):
        timeline.fork("other", at=99)
    with pytest.raises(UnknownTimelineError):
        open_timeline("empty").fork("other", at=0)


# Closing.


def test_after_close_nothing_can_be_written() -> None:
    store = MemoryStore()
    with open_timeline(store=store) as timeline:
        timeline.user("hi")
        timeline.render()
    timeline.close()
    assert store.head(timeline.id) == 3
    with pytest.raises(ClosedError):
        timeline.user("more")
    with pytest.raises(ClosedError):
        timeline.render()


def test_a_file_that_open_made_is_closed_and_a_store_that_was_given_is_not(tmp_path: Path) -> None:
    with open_timeline(store=tmp_path / "log.duckdb") as timeline:
        timeline.user("hi")
    with open_timeline(store=str(tmp_path / "log.duckdb")) as again:
        assert kinds(again) == ["TurnHeader", "UserPrompt"]


def test_a_folder_of_artifacts_that_open_made_is_closed_and_a_store_of_them_that_was_given_is_not(
    tmp_path: Path,
) -> None:
    def put(artifacts: ArtifactStore | None) -> None:
        assert artifacts
        artifacts.put(b"x", ArtifactDescription(timeline=TimelineId("t")))

    with open_timeline(artifacts=tmp_path / "made") as timeline:
        put(timeline.artifacts)
    with pytest.raises(ClosedError):
        put(timeline.artifacts)
    with open_artifacts(tmp_path / "given") as artifacts:
        with open_timeline(artifacts=artifacts) as timeline:
            put(timeline.artifacts)
        put(artifacts)


# Two at once.


def test_two_timelines_over_one_store_lose_nothing() -> None:
    store = MemoryStore()
    one = open_timeline(store=store, ids=make.Ids("one"))
    two = open_timeline(store=store, ids=make.Ids("two"))
    for n in range(20):
        one.note(f"one {n}")
        one.render()
        two.note(f"two {n}")
        two.render()
        two.render()
    one.flush()
    two.flush()
    notes = [getattr(b, "text", "") for _, b in blocks_in(one)]
    assert sorted(notes) == sorted(
        [f"one {n}" for n in range(20)] + [f"two {n}" for n in range(20)]
    )
    third = open_timeline(store=store)
    assert make.flat(third.render()) == make.flat(one.render())


def test_what_one_appends_while_the_other_compacts_stays() -> None:
    store = MemoryStore()
    one = busy(open_timeline(store=store, ids=make.Ids("one")))
    two = open_timeline(store=store, ids=make.Ids("two"))
    two.steer("Do not forget this.")
    rendered = one.compact()
    assert "Do not forget this." in make.text_in(rendered)
    assert len(events_of(one, RangeCompacted)) == 1
    assert make.flat(open_timeline(store=store).render()) == make.flat(one.render())


def test_a_request_of_one_does_not_answer_the_open_call_of_the_other() -> None:
    store = MemoryStore()
    one = open_timeline(store=store, ids=make.Ids("one"))
    one.user("go")
    one.render()
    two = open_timeline(store=store, ids=make.Ids("two"))
    two.record(response(tool_use("a"), id="r"))
    one.note("meanwhile")
    two.tool_result("a", "in time")
    [answer] = [
        c for m in two.render().messages for c in m["content"] if c["type"] == "tool_result"
    ]
    assert answer["content"] == "in time"


@for_each("shared", [True, False])
def test_threads_lose_nothing(shared: bool) -> None:  # noqa: FBT001 -- one table, two rows
    """Through one timeline, or each through its own."""
    store = MemoryStore()
    only = open_timeline(store=store)

    def work(worker: int) -> None:
        mine = only if shared else open_timeline(store=store, ids=make.Ids(f"w{worker}."))
        for n in range(10):
            for _ in range(50):
                try:
                    mine.note(f"{worker}.{n}")
                except VersionConflictError:
                    continue
                break
            mine.render()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    notes = {getattr(event.block, "text", "") for event in events_of(only, BlockAppended)}
    assert notes == {f"{worker}.{n}" for worker in range(4) for n in range(10)}
    reopened = open_timeline(store=store)
    assert reopened.render().violations == ()


def test_ones_own_kinds_of_blocks_need_no_registration() -> None:
    timeline = open_timeline()
    timeline.user("hi")
    fields = {"id": "mine.1", "turn": "t1", "author": "user", "text": "It rains.", "mm": 3}
    timeline.append(OpaqueBlock("weather.report", fields))
    assert "It rains." in make.text_in(timeline.render())
    found = timeline.read("ar:t1.weather.report")
    assert isinstance(found, OpaqueBlock)
    assert found.fields["mm"] == 3
    assert not isinstance(found, AssistantCompletion)


# Checking.


def test_a_timeline_may_check_every_request_and_hands_out_none_that_would_be_refused() -> None:
    with open_timeline(window=60_000_000, validate=False) as timeline:
        timeline.user("word " * 7_000_000)  # more bytes than the API takes
        assert [violation.rule for violation in timeline.render().violations] == ["request_bytes"]
        handed_out = timeline.version
        again = open_timeline(store=timeline._operations.engine.store, window=60_000_000)
        for refused in (again.render, again.compact, partial(again.render_at, handed_out)):
            with pytest.raises(InvalidRequestError, match="request_bytes"):
                refused()
        assert again.version == handed_out


def test_for_another_model_it_is_the_same_timeline_rendered_in_its_form_and_billed_as_its() -> None:
    timeline = Timeline.open("t", model="claude-sonnet-5-5", window=20_000)
    timeline.user("Why does the nightly job fail?")
    other = timeline.for_model("gpt-5.6")
    rendered = other.render()
    assert rendered.openai_responses()["model"] == "gpt-5.6-sol"
    used = {"input_tokens": 9, "output_tokens": 2}
    said = [{"type": "output_text", "text": "The disk.", "annotations": []}]
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "content": said}
    other.record({"id": "resp_1", "output": [answer], "usage": used}, rendered)
    assert timeline.version == other.version
    assert "The disk." in str(timeline.render().anthropic(max_tokens=10))
    [usage] = [event for _, event in timeline.events() if isinstance(event, UsageRecorded)]
    assert usage.model == "gpt-5.6-sol"
    assert timeline.for_model(timeline.settings.model) is timeline
    assert other.settings.limit == 20_000
    with pytest.raises(MisuseError, match=r"for_model\(\): model must be a Model"):
        timeline.for_model(3)  # type: ignore[arg-type]
    other.close()
    with pytest.raises(ClosedError):
        timeline.user("Hello?")
