"""What somebody asked for to be hidden is in nothing that is sent, whatever comes later."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import (
    Action,
    BlocksHidden,
    RangeCompacted,
    StructuredSummary,
    SummaryReplaced,
    UnknownPathError,
    artifact_id,
    label_of,
    text_of,
)
from persistence import MemoryStore
from persistence.sessions import export_lines
from render import Rendered, Summary, View
from tests import _builders as make
from tests._builders import open_timeline, response, text, tool_use
from tests._table import for_each
from tests.strategies import Play, Step, settings, steps
from timeline import SummaryRequest, Timeline
from timeline.engine._hiding import said_by, without_hidden
from timeline.react import reading_tools
from timeline.react._reading import WITHHELD

UNIQUE: Final = re.compile(r"mark_\d{4}|file_\d+(?=\.py)")
"""What only one block of a generated log says."""
SECRET: Final = "sk_live_4f9aa81b2c"  # noqa: S105 -- an example


def quoting(request: SummaryRequest) -> Summary:
    """A summariser that quotes all that it is given."""
    texts = [text_of(entry.block) for entry in (*request.range.folded, *request.range.tail)]
    names = sorted({name for said in texts for name in UNIQUE.findall(said)})
    facts = tuple(f"It says {name}." for name in names)
    written = StructuredSummary(facts=facts, state=" ".join(names), plan="\n".join(texts))
    return Summary(summary=written)


def failing(request: SummaryRequest) -> Summary:
    raise RuntimeError(text_of(request.range.folded[0].block))


SUMMARIZERS: Final[tuple[Callable[[SummaryRequest], Summary] | None, ...]] = (
    None,
    quoting,
    failing,
)


def secrets(timeline: Timeline) -> set[str]:
    """The words that only blocks which are hidden on request say."""
    withheld, blocks = timeline.view.state.withheld, [b for _, b in make.blocks_in(timeline)]
    hidden = {w for b in blocks if b.id in withheld for w in UNIQUE.findall(said_by(b))}
    return hidden - {w for b in blocks if b.id not in withheld for w in UNIQUE.findall(said_by(b))}


def told(rendered: Rendered, words: set[str]) -> list[str]:
    """Where a request says one of these words."""
    request = json.dumps(rendered.request())
    found = (match for match in UNIQUE.finditer(request) if match[0] in words)
    return [request[max(match.start() - 150, 0) : match.end() + 50] for match in found]


def in_summary(view: View) -> str:
    """All that the summary in force holds, shown or not."""
    if view.compaction is None:
        return ""
    return msgspec.json.encode(view.compaction.event.summary).decode()


class Watched(Play):
    """Looks at every request when it is handed out."""

    def _note(self, rendered: Rendered) -> None:
        super()._note(rendered)
        assert told(rendered, secrets(self.timeline)) == []


@given(steps(), settings(), st.sampled_from(SUMMARIZERS))
def test_no_request_contains_what_is_hidden_on_request(
    all_steps: list[Step], options: dict[str, Any], summarizer: Any
) -> None:
    """For any log, any hides at any time, any policy, any order of rungs, any summariser."""
    chosen = options | ({"summarizer": summarizer} if summarizer else {})
    play = Watched(chosen).run([*all_steps, ("render",), ("compact",), ("reopen",), ("render",)])
    timeline, words = play.timeline, secrets(play.timeline)
    event("hidden", payload=bool(words))
    event("rewritten", payload=bool(make.events_of(timeline, SummaryReplaced)))
    assert not words & set(UNIQUE.findall(in_summary(timeline.view)))


@given(steps(), settings())
def test_what_is_restored_is_shown_again(all_steps: list[Step], options: dict[str, Any]) -> None:
    """Hidden and restored, a log holds the same blocks, and its summaries say what they said."""
    play = Play(options).run(all_steps)
    timeline = play.timeline
    before, withheld = in_summary(timeline.view), set(timeline.view.state.withheld)
    blocks = {b.id: b for _, b in make.blocks_in(timeline) if b.id not in withheld}
    hidden = {e.block.id: e.replacement for e in timeline.view.entries}
    if not blocks:
        return
    timeline.hide(*blocks)
    timeline.restore(*blocks)
    assert set(timeline.view.state.withheld) == withheld
    assert in_summary(timeline.view) == before
    for entry in timeline.view.entries:
        if entry.block.id in blocks:
            assert entry.block == blocks[entry.block.id]
            assert entry.replacement is None or hidden[entry.block.id]


# One by one: what quotes a block.


def deploying(**options: Any) -> Timeline:
    """A secret in what the user said, in the agent's words, in a call and in its result."""
    timeline = open_timeline(window=8000, **options)
    timeline.user("Deploy it.")
    timeline.steer(f"You must use the token {SECRET} for the deploy.")
    call = tool_use("c0", "Bash", command=f"deploy --token {SECRET}")
    timeline.record(response(text(f"I use {SECRET} now."), call, id="r0"))
    timeline.tool_result("c0", f"token = {SECRET}\n" * 40)
    return timeline


def work(timeline: Timeline, rounds: int = 40) -> None:
    first = timeline.view.state.rounds
    for n in range(first, first + rounds):
        timeline.record(response(tool_use(f"d{n}", "Read", path=f"src/f{n}.py"), id=f"m{n}"))
        timeline.tool_result(f"d{n}", f"def f{n}(): ...\n" * 60)


PATHS: Final = (
    "ar:t1.user.steer",
    "ar:t1.assistant.completion",
    "tc:t1.c0.call",
    "tc:t1.c0.result",
)


def everything(timeline: Timeline) -> str:
    """What is sent now, and what a summariser would be given."""
    rendered = timeline.render()
    return json.dumps(rendered.request()) + in_summary(timeline.view)


@for_each("folds", [0, 1, 3])
@for_each("more", [0, 2])
def test_a_hide_before_or_after_the_compactions_that_quoted_it(folds: int, more: int) -> None:
    timeline = deploying()
    for _ in range(folds):
        work(timeline)
        timeline.compact()
    assert SECRET in everything(timeline)
    timeline.hide(*PATHS, replacement="[a secret]")
    assert SECRET not in everything(timeline)
    for _ in range(more):
        work(timeline)
        timeline.compact()
        assert SECRET not in everything(timeline)


def test_what_a_fold_had_no_room_for_does_not_bring_it_back() -> None:
    timeline = deploying()
    work(timeline)
    large = tool_use("large", "Write", path="a.html", content="word " * 5000)
    timeline.record(response(large, id="large"))
    timeline.tool_result("large", "ok")
    timeline.compact()
    assert timeline.view.compaction
    assert SECRET in repr(timeline.view.compaction.event.summary.digest.held)
    timeline.hide(*PATHS)
    for _ in range(2):
        assert SECRET not in everything(timeline)
        work(timeline)
        timeline.compact()
        assert SECRET not in repr(timeline.view.compaction)


@for_each("folds", [0, 1])
def test_a_label_hides_and_restores_what_its_path_does(folds: int) -> None:
    """Visible or folded, and what quotes it as well."""
    seen = list[tuple[str, str]]()
    for is_labelled in (False, True):
        timeline = deploying()
        versions = {entry.path: entry.version for entry in timeline.view.entries}
        keys = [label_of(versions[path]) if is_labelled else path for path in PATHS]
        for _ in range(folds):
            work(timeline)
            timeline.compact()
        timeline.hide(*keys)
        hidden = everything(timeline)
        assert SECRET not in hidden
        timeline.restore(*keys)
        seen.append((hidden, everything(timeline)))
    assert seen[0] == seen[1]


def test_undoing_a_compaction_brings_nothing_back() -> None:
    """The summary of the compaction before is rewritten as well."""
    timeline = deploying()
    for _ in range(3):
        work(timeline)
        timeline.compact()
    timeline.hide(*PATHS)
    for _ in range(3):
        timeline.expand()
        assert SECRET not in everything(timeline)


@for_each("folds", [1, 3])
def test_a_folded_block_that_is_restored_is_quoted_again(folds: int) -> None:
    timeline = deploying()
    for _ in range(folds):
        work(timeline)
        timeline.compact()
    before = in_summary(timeline.view)
    timeline.hide(*PATHS)
    timeline.restore(*PATHS)
    assert in_summary(timeline.view) == before


def test_the_error_of_a_command_is_taken_back_with_its_result_and_comes_back_with_it() -> None:
    timeline = open_timeline(window=8000)
    timeline.user("Deploy it.")
    for n in range(2):
        call = tool_use(f"c{n}", "Bash", command="deploy --now", description="Deploy")
        timeline.record(response(text("I deploy."), call, id=f"r{n}"))
        timeline.tool_result(f"c{n}", f"error: token {SECRET} refused", is_error=True)
    work(timeline)
    timeline.compact()
    before = in_summary(timeline.view)
    [deploy] = deploys_of(timeline)
    assert (deploy.runs, SECRET in deploy.outcome) == (2, True)
    timeline.hide("tc:t1.c0.result", "tc:t1.c1.result")
    assert SECRET not in everything(timeline)
    assert [action.target for action in deploys_of(timeline)] == ["deploy --now"]
    work(timeline)
    timeline.compact()
    assert SECRET not in everything(timeline)
    timeline.expand()
    timeline.restore("tc:t1.c0.result", "tc:t1.c1.result")
    assert in_summary(timeline.view) == before


def deploys_of(timeline: Timeline) -> list[Action]:
    """The commands that the summary in force tells of."""
    assert timeline.view.compaction
    actions = timeline.view.compaction.event.summary.digest.actions
    return [action for action in actions if action.verb == "$" and "deploy" in action.target]


def test_what_is_not_hidden_keeps_its_quotations() -> None:
    """Other blocks say the same words: they are no secret of the hidden one."""
    timeline = deploying()
    work(timeline)
    timeline.compact()
    assert "src/f1.py" in everything(timeline)
    timeline.hide(*PATHS)
    assert "src/f1.py" in everything(timeline)


def test_another_timeline_object_that_had_not_heard_of_the_hide_takes_it_back() -> None:
    store = MemoryStore()
    one, other = deploying(store=store), open_timeline(window=8000, store=store)
    work(one)
    other.render()
    one.hide(*PATHS)
    assert SECRET not in json.dumps(other.compact().request())


def test_the_artifact_of_a_hidden_result_does_not_come_back() -> None:
    timeline = deploying(policy=make.steady(externalize_tokens=100))
    original = text_of(timeline.read("tc:t1.c0.result"))
    work(timeline)
    timeline.compact()
    timeline.hide(*PATHS)
    name = artifact_id(original.encode())
    timeline.user(f"And {name}?")
    timeline.record(response(text(f"I look at {name}."), id="last"))
    timeline.followup("Go on.")
    rendered = timeline.render()
    assert not rendered.rehydrated
    assert SECRET not in json.dumps(rendered.request())


def test_hidden_thinking_is_not_shown_behind_a_text() -> None:
    timeline = open_timeline()
    timeline.user("Go.")
    thought = {"type": "thinking", "thinking": f"It is {SECRET}.", "signature": "c2ln"}
    timeline.record(response(thought, text("I know."), id="r1"))
    timeline.hide("ar:t1.assistant.thinking", replacement="[a thought]")
    timeline.steer("Go on.")
    assert SECRET not in everything(timeline)


def test_what_carries_a_hidden_text_says_no_more_than_what_stands_for_it() -> None:
    """A carried text that is hidden, cut again by a smaller share, is not cut from the original."""
    timeline = deploying()
    timeline.hide("ar:t1.user.steer", replacement="a long text that stands for it " * 60)
    timeline.hide(*PATHS[1:])
    for _ in range(3):
        work(timeline)
        timeline.compact()
        assert SECRET not in everything(timeline)
    carried = [c for e in make.events_of(timeline, RangeCompacted) for c in e.carried]
    assert any(c.withheld for c in carried)


def test_a_summary_cannot_be_hidden_and_the_log_is_left_alone() -> None:
    timeline = deploying()
    work(timeline)
    timeline.compact()
    timeline.flush()
    version = timeline.version
    with pytest.raises(UnknownPathError):
        timeline.hide("su:t1.conv.range.summary")
    assert timeline.version == version


def test_a_dropped_span_keeps_its_line_when_its_first_block_is_hidden_or_restored() -> None:
    policy = make.steady(rungs=("drop",), keep_ratio=0.05)
    timeline = deploying(policy=policy)
    work(timeline)
    timeline.compact()
    dropped = [e for e in timeline.view.entries if e.dropped]
    assert dropped
    timeline.hide(dropped[0].block.id)
    assert [e.block.id for e in timeline.view.entries if e.dropped] == [dropped[0].block.id]
    timeline.restore(dropped[0].block.id)
    assert sum(e.dropped is not None for e in timeline.view.entries) == 1
    hides = make.events_of(timeline, BlocksHidden)
    assert sum(e.reason == "dropped" and not e.redacted for e in hides) == 1


# What gives content to a model, and what hands on a log.


def test_the_reading_tools_do_not_read_it_back() -> None:
    timeline = deploying(policy=make.steady(externalize_tokens=100))
    work(timeline)
    timeline.compact()
    name = artifact_id(text_of(timeline.read("tc:t1.c0.result")).encode())
    timeline.hide(*PATHS)
    read_timeline, read_artifact = reading_tools(timeline)
    versions = {block.id: version for version, block in make.blocks_in(timeline)}
    labels = [label_of(versions[timeline.read(path).id]) for path in PATHS]
    for path in (*PATHS, *labels):
        assert read_timeline.call(path=path).output == WITHHELD
    assert "nothing matches" in str(read_timeline.call(query=SECRET).output)
    assert read_artifact.call(artifact_id=name).output == WITHHELD
    assert text_of(timeline.read("tc:t1.c0.result")).count(SECRET) == 40


def test_a_summary_is_rebuilt_from_what_may_be_shown() -> None:
    store = MemoryStore()
    timeline = deploying(store=store, summarizer=failing)
    work(timeline)
    timeline.compact()
    timeline.hide(*PATHS)
    requests: list[SummaryRequest] = []

    def noting(request: SummaryRequest) -> Summary:
        requests.append(request)
        return quoting(request)

    again = open_timeline(
        window=8000, store=store, summarizer=noting, clock=make.Clock(), ids=make.Ids("n")
    )
    assert again.upgrade_summary()
    assert SECRET not in in_summary(again.view)
    assert "def f1(): ..." in in_summary(again.view)


def test_a_log_is_handed_on_without_it() -> None:
    timeline = deploying(summarizer=quoting)
    work(timeline)
    timeline.compact()
    timeline.hide(*PATHS)
    log = timeline.events()
    lines = "".join(export_lines(timeline.id, without_hidden(log)))
    assert SECRET not in lines
    assert "src/f1.py" in lines
    timeline.restore(*PATHS)
    log = timeline.events()
    assert without_hidden(log) is log
