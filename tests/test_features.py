"""What comparable systems offer, one row after the other, and the test that shows it here.

Rows about checkpoints in a command line:

    000-1   timeline/test_policies.py (checkpoint), timeline/summarizers/test_model.py (another model)
    000-2   here, timeline/summarizers/test_model.py (provenance), persistence/duckdb/test_views.py
    000-3   here
    000-4   timeline/summarizers/test_summarizer.py
    000-5   timeline/summarizers/test_summarizer.py
    000-6   here, timeline/engine/test_prepare_summary.py
    000-7   timeline/react/test_snapshot.py
    000-8   here
    000-9   timeline/summarizers/test_drift.py

Rows about compaction inside an agent loop:

    002-1   here, timeline/tokens/
    002-2   here
    002-3   timeline/test_policies.py (last-messages)
    002-4   here, test_guarantees.py, render/compaction/test_cut.py
    002-5   timeline/summarizers/test_model.py, here (rounds)
    002-6   here, timeline/summarizers/test_model.py
    002-7   timeline/summarizers/test_model.py (quoted chunks)
    002-8   timeline/summarizers/test_summarizer.py
    002-9   here
    002-10  timeline/react/test_loop.py, timeline/react/test_long.py

Rows about proactive and reactive compaction:

    004-1   timeline/react/test_loop.py, timeline/test_policies.py (forty)
    004-2   timeline/react/test_loop.py
    004-3   here
    004-4   timeline/test_policies.py (forty)
    004-5   here
    004-6   timeline/summarizers/test_summarizer.py
    004-7   timeline/react/test_loop.py
    004-8   timeline/react/test_loop.py, timeline/summarizers/test_summarizer.py

Rows of the block timeline that need a model, a hook or a threshold:

    003-1   here
    003-2   timeline/react/test_loop.py
    003-9   timeline/summarizers/test_model.py
    003-15  timeline/observe/test_hooks.py

The rows about an immutable log, a draft and a renderer have a list of their own:
test_features_ladder.py.
"""

import re
import threading
from pathlib import Path

import duckdb
import pytest

from blocks import (
    Decision,
    DocumentPart,
    ErrorRecord,
    ImagePart,
    OpenItem,
    Provenance,
    RangeCompacted,
    StructuredSummary,
    TextPart,
    TimelineId,
    Work,
    encode_block,
)
from persistence import DuckDBStore, MemoryStore
from render import Policy, Summary, validate_request
from tests import _builders as make
from tests._builders import blocks_in, events_of, open_timeline, response, text, tool_use
from tests._table import for_each
from timeline import Hooks, SummaryRequest, Timeline, model_named

HERE = Path(__file__)
ROWS = {f"000-{n}" for n in range(1, 10)} | {f"002-{n}" for n in range(1, 11)}
ROWS |= {f"004-{n}" for n in range(1, 9)} | {"003-1", "003-2", "003-9", "003-15"}


def work(timeline: Timeline, rounds: int, first: int = 0) -> None:
    for n in range(first, first + rounds):
        timeline.record(response(tool_use(f"toolu_{n}", "read", path=f"src/f{n}.py"), id=f"r{n}"))
        timeline.tool_result(f"toolu_{n}", "x" * 800)


def costly(request: SummaryRequest) -> Summary:
    """A summariser that says what it cost."""
    spent = Provenance(source_hash=request.range.source_hash, model="cheap", cost_usd=0.02)
    told = StructuredSummary(facts=("The disk of db-2 is full.",), state="Reading on.")
    return Summary(summary=told, provenance=spent)


def test_every_row_is_listed_with_files_that_are_there() -> None:
    """The list above is kept true."""
    listed = re.findall(r"^    (\d{3}-\d+)\s+(.*)$", __doc__ or "", re.MULTILINE)
    assert {row for row, _ in listed} == ROWS
    for row, where in listed:
        for name in re.findall(r"[\w/]+(?:\.py|/)", where):
            assert (HERE.parent / name).exists(), row
        if "here" in where:
            assert f'"""{row}: ' in HERE.read_text(encoding="utf-8"), row


# 000: checkpoints in a command line.


def test_checkpoints_can_be_asked_for_in_sql(tmp_path: Path) -> None:
    """000-2: range, blocks, key facts, tokens before and after, ratio, dollars."""
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        timeline = open_timeline(store=store, window=4000, summarizer=costly)
        timeline.user("go")
        work(timeline, 15)
        timeline.compact()
    with duckdb.connect(str(path), read_only=True) as database:
        asked = "SELECT start, cut, blocks, key_facts, tokens_before, tokens_after, ratio, cost_usd"
        [row] = database.execute(f"{asked} FROM compactions").fetchall()
    start, cut, blocks, facts, before, after, ratio, dollars = row
    assert (start, facts, dollars) == (1, ["The disk of db-2 is full."], 0.02)
    assert 0 < blocks < cut
    assert after < before
    assert ratio == pytest.approx(after / before)


def test_several_checkpoints_in_each_session_and_none_of_another() -> None:
    """000-3: several per session, isolated between sessions."""
    store = MemoryStore()
    timelines = [open_timeline(f"talk {n}", store=store, window=4000) for n in range(3)]
    for round_ in range(3):
        for number, timeline in enumerate(timelines):
            timeline.user(f"Secret of session {number}: word{number}{number}.")
            work(timeline, 12, 12 * round_)
            timeline.compact()
    for number, timeline in enumerate(timelines):
        assert len(events_of(timeline, RangeCompacted)) == 3
        shown = make.text_in(timeline.render())
        assert f"word{number}{number}" in shown
        assert not any(f"word{n}{n}" in shown for n in range(3) if n != number)


def test_threads_may_append_and_render_at_once() -> None:
    """000-6: safe under threads."""
    timeline = open_timeline(window=6000)
    timeline.user("go")
    failures: list[BaseException] = []

    def talk(name: str) -> None:
        try:
            for n in range(30):
                timeline.steer(f"{name} {n}: " + "word " * 60)
                assert timeline.render().violations == ()
        except BaseException as error:  # noqa: BLE001 -- told by the test
            failures.append(error)

    threads = [threading.Thread(target=talk, args=(f"thread{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(blocks_in(timeline)) == 2 + 4 * 30
    assert events_of(timeline, RangeCompacted)


def test_it_can_be_switched_off_and_its_cost_and_gain_are_known() -> None:
    """000-8: feature flag; cost tracking; compression ratio monitored."""
    off = Hooks(on_before_compaction=[lambda _: False])
    for hooks in (off, Hooks()):
        timeline = open_timeline(window=5000, hooks=hooks, summarizer=costly)
        timeline.user("go")
        for n in range(20):
            work(timeline, 1, n)
            timeline.render()
        events = events_of(timeline, RangeCompacted)
        assert bool(events) == (hooks is not off)
        for event in events:
            assert event.provenance.cost_usd == 0.02
            assert event.tokens_after < event.tokens_before


# 002: compaction inside an agent loop.


def test_the_cheap_estimator_counts_every_kind_of_part() -> None:
    """002-1: a heuristic estimator as a choice beside the exact one."""
    parts: dict[str, TextPart | ImagePart | DocumentPart] = {
        "text": TextPart(text="A few words, and some more."),
        "image": ImagePart(data="aGVsbG8="),
        "document": DocumentPart(data="JVBERi0=", media_type="application/pdf", name="a.pdf"),
    }
    for counter in ("estimate", "model"):
        empty = open_timeline(counter=counter)
        empty.user("see")
        least = empty.render().tokens
        for kind, part in parts.items():
            timeline = open_timeline(counter=counter)
            timeline.user("see", part)
            assert timeline.render().tokens > least, kind
        least = empty.render().tokens
        empty.record(response(tool_use("c", "read", path="a/rather/long/path.py"), id="r"))
        called = empty.render().tokens
        empty.tool_result("c", "content " * 50)
        assert least < called < empty.render().tokens


@for_each("model", ["claude-haiku-4-5", "claude-sonnet-5-5"])
def test_the_threshold_is_a_share_of_what_the_model_leaves(model: str) -> None:
    """002-2: limits by model; (limit - output - safety) x percent, the system prompt inside."""
    policy = Policy(trigger_ratio=0.8, target_ratio=0.5, safety_ratio=0.05, output_tokens=4000)
    timeline = Timeline.open("limits", model=model, policy=policy, counter="estimate")
    limit = timeline.render(system="You help.").account.limit
    assert limit == model_named(model).tokens_window - 4000
    threshold = int(0.8 * int(limit * 0.95))
    sizes = [0]
    while not events_of(timeline, RangeCompacted):
        timeline.user(f"{len(sizes)} " + "word " * (limit // 80))
        sizes.append(timeline.render(system="You help.").tokens)
    assert sizes[-2] <= threshold
    assert events_of(timeline, RangeCompacted)[0].tokens_before > threshold


def test_calls_and_results_stay_together_wherever_it_cuts() -> None:
    """002-4: and 004-5: the split is adjusted for tool pairs, parallel ones as well."""
    for keep in range(1, 30):
        policy = make.steady(keep_messages=keep)
        timeline = open_timeline(window=100_000, policy=policy)
        timeline.user("go")
        for n in range(12):
            calls = [tool_use(f"c{n}.{m}") for m in range(1 + n % 3)]
            timeline.record(response(*calls, id=f"r{n}"))
            for m in reversed(range(len(calls))):
                timeline.tool_result(f"c{n}.{m}", "x" * 400)
        rendered = timeline.compact()
        assert validate_request(rendered.anthropic(max_tokens=9), make.LOOSE) == ()
        assert not rendered.notices, "nothing had to be repaired"


def test_the_split_is_adjusted_for_tool_pairs() -> None:
    """004-5: see the test before; a cut between call and result moves to before the call."""
    timeline = open_timeline(policy=make.steady(keep_messages=1))
    timeline.user("go")
    work(timeline, 5)
    timeline.compact()
    assert timeline.view.compaction
    first = timeline.view.entries[0].path
    assert first == "tc:t1.toolu_4.call"


def test_chained_summaries_count_their_rounds() -> None:
    """002-5: the previous summary is integrated, the round is counted."""
    timeline = open_timeline(window=4000, summarizer=costly)
    timeline.user("go")
    for chain in range(3):
        work(timeline, 12, 12 * chain)
        timeline.compact()
        assert timeline.view.compaction
        block = timeline.view.compaction.event.summary
        assert block.digest.compactions == chain + 1
        assert block.summary.facts == ("The disk of db-2 is full.",)


def test_a_summary_has_the_sections_that_work_goes_on_from() -> None:
    """002-6: task, completed work, decisions, state, open items, errors; at most 800 tokens."""
    told = StructuredSummary(
        task="Translate the site.",
        completed=(Work(component="pages/en.html", action="translated", description="all of it"),),
        decisions=(Decision(decision="Keep the URLs.", reason="of the links"),),
        state="The footer is next.",
        open_items=(OpenItem(item="Ask about the imprint.", priority="high"),),
        errors=(ErrorRecord(error="A missing font", resolution="took another"),),
    )
    timeline = open_timeline(summarizer=lambda _: Summary(summary=told))
    timeline.user("go")
    work(timeline, 20)
    shown = make.text_in(timeline.compact())
    for line in (
        "## Goal\nTranslate the site.",
        "## Completed work\n- pages/en.html: translated: all of it",
        "## Decisions\n- Keep the URLs, because of the links",
        "## Current state\nThe footer is next.",
        "## Open items\n- [high] Ask about the imprint.",
        "## Errors and their resolution\n- A missing font -> took another",
    ):
        assert line in shown
    assert Policy().summary_tokens == 8000


def test_a_compaction_is_an_event_that_tells_everything_of_it() -> None:
    """002-9: persisted: round, tokens before and after, summary, what was folded."""
    store = MemoryStore()
    timeline = open_timeline(store=store, window=4000, summarizer=costly)
    timeline.user("go")
    work(timeline, 15)
    before = [encode_block(block) for _, block in blocks_in(timeline)]
    timeline.compact()
    timeline.close()
    again = open_timeline(store=store, window=4000)
    [event] = events_of(again, RangeCompacted)
    assert event.state.rounds > 0
    assert event.tokens_after < event.tokens_before
    assert event.summary.summary.facts == ("The disk of db-2 is full.",)
    folded = [b for version, b in blocks_in(again) if event.start <= version < event.cut]
    assert [encode_block(block) for block in folded] == before[: len(folded)]
    assert len(folded) == event.summary.digest.blocks
    assert store.head(TimelineId("talk")) == again.version


# 003, 004: when.


def test_it_compacts_above_nine_tenths_and_not_below() -> None:
    """003-1: estimates, and compacts when system and blocks exceed 0.9 of the maximum."""
    system = "s" * 4000
    for tokens, due in ((7500, False), (8700, True)):
        timeline = open_timeline(window=10_000, policy=make.steady(trigger_ratio=0.9))
        for n in range(tokens // 500):
            timeline.user("x" * 4 * 240)
            timeline.record(response(text("y" * 4 * 240), id=f"r{n}"))
        timeline.render(system=system)
        assert bool(events_of(timeline, RangeCompacted)) == due


@for_each(("model", "window"), [("claude-haiku-4-5", 200_000), ("claude-sonnet-5-5", 1_000_000)])
def test_the_account_tells_utilisation_limit_and_reserve(model: str, window: int) -> None:
    """004-3: budget with utilisation, context limit, output reserve; 200k and 1M windows."""
    timeline = Timeline.open("budget", model=model, counter="estimate")
    timeline.user("word " * 20_000)
    account = timeline.render(system="You help.").account
    assert account.limit == window - Policy().output_tokens
    assert account.total == account.system + account.tools + account.summary + account.messages
    assert 0 < account.total / account.limit < 1
