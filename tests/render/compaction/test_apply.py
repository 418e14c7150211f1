"""What a compaction leaves: one event, a view like the reopened one, and nothing lost on the way."""

import attrs
import pytest

from blocks import (
    CompactionSkipped,
    Decision,
    EventId,
    LogWindow,
    Provenance,
    RangeCompacted,
    StructuredSummary,
    SummaryRequested,
    ToolOutcome,
    encode_block,
    encode_event,
)
from render import (
    Place,
    Summary,
    apply_range,
    commit,
    extractive,
    open_view,
    range_before,
    skip,
    total_tokens,
    truncated,
)
from render.compaction._range import compaction_event, squeezed
from tests import _builders as make
from tests._builders import context, grown, prompt, steady, view_of
from tests._table import for_each
from tests.render.compaction.drawings import drawn
from tests.render.compaction.talk import compacted, names, range_of, rounds, turns

# What it leaves.


def test_the_event_names_a_range_and_the_turns_it_covers() -> None:
    view = make.view_of(*turns(3), make.header("t9"), make.prompt("The last.", "t9"))
    [event] = [e for e in compacted(view, context()).decisions if isinstance(e, RangeCompacted)]
    summary = event.summary
    assert (event.start, event.cut) == (1, 26)
    assert summary.id == f"summary.{view.version + 1}", "the version that the event will have"
    assert summary.turn == "t9"
    assert (summary.start, summary.cut) == (1, 26)
    assert summary.covered_turn_ids == ("t0", "t1", "t2", "t9")
    assert summary.split_turn_id is None
    assert event.tokens_after < event.tokens_before


def test_a_cut_inside_a_turn_says_which() -> None:
    view = make.view_of(*turns(2), make.prompt("The last.", "t9"), *rounds(4, "t9", first=9))
    fold = range_of(view, context(), 0.0)
    assert fold.is_split
    assert fold.is_split
    assert fold.tail[0].block.turn == "t9"
    after = compacted(view, context())
    assert after.compaction
    assert after.compaction.event.summary.split_turn_id == "t9"
    assert "the beginning of t9" in make.text_in(make.shown(after))


def test_a_turn_goes_on_whose_beginning_an_earlier_compaction_folded() -> None:
    """Also where this one folds nothing of it: late results of older turns, say."""
    view = make.view_of(*turns(2), make.prompt("The last.", "t9"), *rounds(4, "t9", first=9))
    split = compacted(view, context()).settled()
    later = grown(split, *rounds(4, "t9", first=20))
    fold = attrs.evolve(range_of(later, context(), 0.0), folded=tuple(view.entries[2:5]))
    event = compaction_event(later, fold, extractive(fold), context())
    assert event.summary.begun_turn_id == "t9"
    assert compaction_event(view, fold, extractive(fold), context()).summary.begun_turn_id is None


def test_the_range_is_hidden_and_the_log_keeps_it() -> None:
    view = make.view_of(*turns(6))
    after = compacted(view, context())
    assert after.compaction
    assert [e.version for e in after.entries] == [
        e.version for e in view.entries if e.version >= after.compaction.event.cut
    ]
    shown = make.shown(after)
    assert shown.violations == ()
    assert "Prompt 0." in make.text_in(shown)
    assert "xxxx" * 50 not in make.text_in(shown).split("\n</summary-")[0]


@for_each(
    "line",
    [
        "P c1 r1 c2 r2 c3 r3 a",
        "P (t a c1) r1 s (a c2 c3) r3 r2 P a",
        "H P a H P c1 | s r1 (t a c2) f n a",
        "P a P a ! s",
    ],
)
def test_rounds_keep_their_numbers_wherever_the_cut_is(line: str) -> None:
    """A prune goes by the age of a round, and by nothing that was folded before it."""
    view, within = drawn(line).view, context()
    numbers = {entry.version: entry.round for entry in view.entries}
    cuts = 0
    for entry in view.entries:
        fold = range_before(view, within, "forced", entry.version)
        if fold is None:
            continue
        cuts += 1
        after = apply_range(view, fold, extractive(fold), within)
        opened = [e for e in after.entries if e.round]
        assert {e.version: e.round for e in opened} == {
            e.version: numbers[e.version] for e in opened
        }
        assert all(e.round for e in after.entries if e.place is Place.RESPONSE)
        assert after.state.rounds == view.state.rounds
        assert grown(after, make.said("on", "t9", "new")).entries[-1].round == view.state.rounds + 1
    assert cuts >= 3


def test_a_chain_of_compactions_leaves_no_gap() -> None:
    within = context(limit=3000)
    view = make.view_of(make.header(), make.prompt("go"))
    ends: list[tuple[int, int]] = []
    for n in range(6):
        view = compacted(grown(view, *rounds(10, first=10 * n)), within)
        assert view.compaction
        ends.append((view.compaction.event.start, view.compaction.event.cut))
    facts = [start for start, _ in ends[1:]]
    assert ends[0][0] == 1
    assert all(cut <= start for (_, cut), start in zip(ends, facts, strict=False))
    assert view.compaction
    digest = view.compaction.event.summary.digest
    assert digest.compactions == 6
    assert digest.rounds >= 59


def test_ten_compactions_lose_no_constraint_and_no_decision() -> None:
    """Whatever the limit forces out, and whatever the model forgets to repeat."""
    within = context(limit=6000)
    view = make.view_of(make.header(), make.prompt("the task"))
    for n in range(10):
        view = compacted(
            grown(view, *rounds(10, first=10 * n)),
            within,
            task="the task",
            constraints=(f"constraint {n}: never do {n}",),
            decisions=(Decision(decision=f"decision {n}", reason=f"reason {n}"),),
            tool_outcomes=(ToolOutcome(tool="bash", outcome=f"outcome {n} " + "o" * 900),),
            state=f"state {n}",
        )
    text = make.text_in(make.shown(view))
    assert all(f"constraint {n}: never do {n}" in text for n in range(10))
    assert all(f"decision {n}, because reason {n}" in text for n in range(10))
    assert "state 9" in text
    assert "state 8" not in text
    assert "outcome 0 " not in text


def test_the_size_of_the_event_does_not_grow_with_what_it_folds() -> None:
    """Two versions, never a list of ids."""
    sizes: list[int] = []
    for number in (20, 200):
        view = make.view_of(make.header(), make.prompt("go"), *rounds(number))
        event = compacted(view, context(limit=2000)).decisions[-1]
        assert isinstance(event, RangeCompacted)
        sizes.append(len(encode_event(event)) - len(encode_block(event.summary)))
    assert sizes[1] < sizes[0] + 20


def test_live_and_reopened_views_are_one() -> None:
    within = context(limit=4000)
    view = make.view_of(*turns(10))
    after = compacted(view, within, keep=0.1)
    assert after.compaction
    log = [*make.log(), *view.events_since_cut, (view.version + 1, after.decisions[-1])]
    kept = tuple(r for r in log if r[0] >= after.compaction.event.cut)
    reopened = open_view(LogWindow(version=view.version + 1, compaction=log[-1], events=kept))
    assert make.request_bytes(make.shown(reopened)) == make.request_bytes(make.shown(after))
    assert reopened.state == after.state


def test_calls_for_summaries_are_counted_across_compactions() -> None:
    within = context(limit=4000)
    view = make.view_of(make.header(), make.prompt("go"), *rounds(30))
    for n in range(3):
        view = commit(view, SummaryRequested(id=EventId(f"asked{n}"), at=0.0))
        fold = range_of(view, within, 0.0)
        written = Summary(
            summary=StructuredSummary(state="s"),
            provenance=Provenance(source_hash=fold.source_hash, model="some-model"),
        )
        view = apply_range(view, fold, written, within)
        assert view.state.summaries == n + 1
        view = grown(view, *rounds(30, first=30 * (n + 1)))


def test_choosing_a_range_and_applying_it_change_nothing_by_themselves() -> None:
    view = make.view_of(*turns(8))
    before = make.request_bytes(make.shown(view))
    compacted(view, context())
    assert make.request_bytes(make.shown(view)) == before
    assert view.decisions == ()


def test_open_calls_outlive_every_compaction() -> None:
    view = make.view_of(*turns(8), make.call("open", "t7", "r"), make.steer("hurry", "t7"))
    after = compacted(view, context())
    answered = grown(after, make.result("open", "the answer", "t7"))
    [answer] = [
        c for m in make.shown(answered).messages for c in m["content"] if c["type"] == "tool_result"
    ]
    assert answer["content"] == "the answer"


def test_squeezing_shrinks_what_a_compaction_leaves_and_nothing_else() -> None:
    policy = steady(page_tokens=8_000, working_ratio=0.4, user_ratio=0.2)
    before = context(policy=policy)
    assert squeezed(before, 1.0) is before
    after = squeezed(before, 0.25)
    assert after.policy == steady(page_tokens=2_000, working_ratio=0.1, user_ratio=0.2)
    assert attrs.evolve(after, policy=policy, squeeze=1.0) == before
    least = squeezed(before, 0.02).policy
    assert least.user_ratio / 0.2 == pytest.approx(0.1**0.5), "what the user laid down"
    assert least.standing_ratio / policy.standing_ratio == pytest.approx(0.1**0.5)
    assert (least.summary_tokens, least.keep_ratio) == (policy.summary_tokens, policy.keep_ratio)
    assert least.prefix_tokens == policy.prefix_tokens // 5


def test_the_summary_that_needs_no_model_says_what_it_was_made_of() -> None:
    fold = range_of(make.view_of(*turns(3)), context(), 0.0)
    assert extractive(fold).provenance == Provenance(source_hash=fold.source_hash)


# Without a summary, and without a compaction.


@for_each(
    ("said", "about"),
    [
        (["Fix it.", " Then ship it.\nToday."], "; they were about: Fix it.; Then ship it."),
        (["x" * 81], f"; they were about: {'x' * 80}"),
        (["y" * 80] * 9, f"; they were about: {'; '.join(['y' * 80] * 9)[:600]}"),
        ([" \n"], ""),
        ([], ""),
    ],
)
def test_what_is_left_of_a_range_that_nobody_summarises(said: list[str], about: str) -> None:
    """How much it was, and the first words of what the user said in it."""
    blocks = [prompt(text, f"t{n}") for n, text in enumerate(said)]
    work = list(rounds(2, "t8"))
    fold = range_of(view_of(*blocks, *work, prompt("The last.", "t9")), context(), 0.0)
    left = truncated(fold).summary
    number = len(blocks) + len(work)
    assert left == StructuredSummary(
        state=f"[{number} earlier blocks were left out without a summary{about}]"
    )


@for_each(("more", "detail"), [((), ""), (("12 -> 11 tokens",), "12 -> 11 tokens")])
def test_a_compaction_that_did_not_happen_leaves_a_note_why(
    more: tuple[str, ...], detail: str
) -> None:
    view, within = view_of(prompt("go")), context(now=5.0)
    after = skip(view, "no_gain", within, *more)
    [event] = after.decisions
    assert isinstance(event, CompactionSkipped)
    assert (event.reason, event.at, event.detail) == ("no_gain", 5.0, detail)
    assert event.tokens == total_tokens(view, within)
    assert event.id == "", "whoever commits it names it"


# Blocks of any kind may be folded.


def test_blocks_of_unknown_kinds_are_folded_like_any_other() -> None:
    view = view_of(
        prompt("go"), make.opaque("their.kind", author="user", text="theirs " * 2000),
        make.opaque("their.kind", value=[1]), *names(3), prompt("next", "t2"),
    )  # fmt: skip
    assert make.shown(compacted(view, context())).violations == ()
