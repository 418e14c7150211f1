"""Which of the possible folds is taken: the first that leaves room for a round."""

import attrs
import pytest

from blocks import Block, text_of
from render import (
    Context,
    View,
    apply_compaction,
    apply_range,
    compaction_due,
    draft_compaction,
    extractive,
    total_tokens,
)
from render.compaction._head import LEAST_SHARE
from render.compaction._range import fitting_range, tried_out
from render.policy._context import PageRoom
from render.summary._actions import text_of_actions
from render.summary._findings import text_of_findings as text
from render.summary._text import DONE, FINDINGS, computed_sections
from tests import _builders as make
from tests._builders import CharCounter, context, grown, steady
from tests._table import for_each
from tests.render.compaction.talk import compacted, names, rounds, turns


def test_of_the_folds_that_may_be_had_the_first_that_leaves_room_for_a_round_is_taken() -> None:
    """Five hundredths below the trigger: a fold that ends right under it is due again at once."""
    view = make.view_of(*turns(20))
    total = total_tokens(view, context())
    tight = 0
    for trigger in range(total // 14, total // 3, total // 200):
        within = context(
            policy=steady(trigger_tokens=trigger, keep_ratio=0.05, page_tokens=200_000)
        )
        fitted = fitting_range(view, within, "proactive")
        assert fitted
        after = total_tokens(
            apply_range(view, fitted.range, extractive(fitted.range), fitted.context), within
        )
        assert after <= 0.95 * trigger or fitted.squeeze == pytest.approx(0.004)
        assert tried_out(view, fitted.range, fitted.context).fits == (after <= 0.95 * trigger)
        tight += 0.9 * trigger < after <= 0.95 * trigger
    assert tight, "some ends near it"


def test_trigger_and_target_differ_so_that_it_does_not_compact_on_every_round() -> None:
    within = context(limit=4000)
    view = make.view_of(make.prompt("go"), *rounds(40))
    assert compaction_due(view, within)
    after = compacted(view, within, keep=0.2)
    compactions = 0
    for n in range(40, 60):
        assert total_tokens(after, within) <= within.limit
        after = grown(after, *rounds(1, first=n))
        if compaction_due(after, within):
            after, compactions = compacted(after, within, keep=0.2), compactions + 1
    assert compactions <= 3


@attrs.frozen
class Listening(CharCounter):
    """Notes what it is asked to count."""

    asked: list[str] = attrs.field(factory=list[str])

    def count(self, text: str) -> int:
        self.asked.append(text)
        return super().count(text)


@for_each("earlier", [0, 1, 2])
def test_a_compaction_works_its_summary_out_once(earlier: int) -> None:
    """However often it is asked what it would come to: before a model is asked, and when it is applied."""
    view, counter = make.view_of(make.prompt("go")), Listening()
    within = context(limit=8000, counter=counter)
    for n in range(earlier + 1):
        view = make.grown(view, make.said(f"Row {n} failed."), *names(20, first=20 * n))
        counter.asked.clear()
        trial = draft_compaction(view, within, "proactive")
        assert trial
        view = apply_compaction(view, trial, None, within).settled()
    assert view.compaction
    told = text(view.compaction.event.summary.digest.findings)
    assert counter.asked.count(told) == 1


# What is read of a page shares its room.


def _page(*blocks: Block, within: Context | None = None) -> dict[str, int]:
    """The tokens of each section of the page that the blocks are folded into."""
    within = within or context()
    after = compacted(make.view_of(*blocks, make.prompt("And now?", "t99")), within)
    assert after.compaction
    sections = computed_sections(after.compaction.event.summary.digest)
    return {title: within.counter.count(told) for title, told in sections if told}


def _spoken() -> list[Block]:
    """A long turn of which there is much to tell."""
    return [
        block
        for n in range(1200)
        for block in (
            make.said(f"The sign_{n} of sum_{n} in row_{n} comes from file_{n}.py.", "t1"),
            make.call(f"c{n}", "t1", name="read", path="a.py"),
            make.result(f"c{n}", "x", "t1"),
        )
    ]


def test_what_one_part_leaves_of_its_room_another_has() -> None:
    room = PageRoom.of(context().policy, context().capacity)
    silent = [
        block
        for n in range(1200)
        for block in (
            make.call(f"c{n}", "t1", name="bash", command=f"make part_{n}"),
            make.result(f"c{n}", f"part {n} of it was made", "t1"),
        )
    ]
    assert room.done < _page(make.prompt("go", "t1"), *silent)[DONE] <= room.report
    assert room.findings < _page(make.prompt("go", "t1"), *_spoken())[FINDINGS] <= room.report


def test_what_was_found_keeps_a_third_of_its_room_however_little_the_target_leaves() -> None:
    """Standing instructions and a model's part may fill the target for a moment."""
    within = context(policy=steady(target_ratio=0.02))
    sections = _page(make.prompt("go", "t1"), *_spoken(), within=within)
    least = LEAST_SHARE * PageRoom.of(within.policy, within.capacity).report
    assert 0.8 * least <= sections[FINDINGS] + sections[DONE] <= least


def test_a_page_whose_target_leaves_little_leaves_room_before_the_next_compaction() -> None:
    """It would be due at once, again and again, if the page took what is left."""
    within = context(
        system=({"type": "text", "text": "x" * 4 * 88_000},), policy=steady(target_ratio=0.02)
    )
    sections = _page(make.prompt("go", "t1"), *_spoken(), within=within)
    assert 0 < sections[FINDINGS] + sections[DONE] <= LEAST_SHARE * 2_000


@for_each("limit", [4_000, 100_000])
@for_each("tokens", [3_700, 4_100])
def test_what_a_fold_has_no_room_for_the_next_one_tells(limit: int, tokens: int) -> None:
    """Beside a prompt, or a result, that fills the window or more, also if the window is small by the policy."""
    within = context(limit=limit, policy=steady(trigger_tokens=4_000))
    spoken, now = _spoken()[:300], make.prompt("x" * 4 * tokens, "t99")
    view = make.view_of(make.prompt("go", "t1"), *spoken, now)
    tight = fitting_range(view, within, "proactive")
    assert tight
    assert _found(tight.after, within) < 100
    later = make.grown(
        tight.after, make.said("Done.", "t99"), *rounds(3, "t99"), make.prompt("And now?", "t100")
    )
    after = compacted(later, within)
    assert (
        _found(after, within)
        >= 0.8 * LEAST_SHARE * PageRoom.of(within.policy, within.capacity).report
    )
    assert after.compaction
    assert after.compaction.event.summary.digest.findings[0].turn == "t1"


def test_beside_a_models_part_reports_have_a_third_of_their_room_and_none_is_lost() -> None:
    """Each page is made from them as they were, not from what the page before had room for."""
    within, told = context(), list[Block]()
    for n in range(40):
        rows = " ".join(
            f"Row {n}.{row} of the ledger has the sign of file_{row}.py." for row in range(40)
        )
        told += [
            make.prompt("go", f"t{n}"),
            make.said("I look.", f"t{n}"),
            *rounds(1, f"t{n}"),
            make.said(rows, f"t{n}"),
        ]
    view = make.view_of(*told, make.prompt("?", "t99"))
    room = PageRoom.of(within.policy, within.capacity)
    for _ in range(2):
        view = compacted(view, within, state="On it.", complete=True)
        assert view.compaction
        digest = view.compaction.event.summary.digest
        assert _found(view, within) <= room.findings / 3
        assert 0 < within.counter.count(text_of_actions(digest.actions)) <= room.done / 3
        assert digest.held
        assert room.findings / 2 < within.counter.count(text(digest.held.findings)) <= room.report
        view = make.grown(view, *rounds(3, "t99"), make.prompt("?", "t100"))


@for_each("asked", ["Implement docs/plan.md.", "Implement the plan."])
def test_a_document_that_the_user_named_is_on_the_page(asked: str) -> None:
    read: list[Block] = [
        make.call("c1", "t1", name="Read", file_path="/w/docs/plan.md"),
        make.result("c1", "# Plan\n\nNever touch row 7.", "t1"),
    ]
    view = make.view_of(make.prompt(asked, "t1"), *read, *rounds(20, "t1"), make.prompt("?", "t2"))
    for _ in range(2):
        view = compacted(view, context())
        assert view.compaction
        told = text(view.compaction.event.summary.digest.findings)
        assert ("/w/docs/plan.md, which the user named: Plan:" in told) is ("docs" in asked)
        view = make.grown(view, *rounds(20, "t2", first=50), make.prompt("?", "t3"))


def _found(view: View, within: Context) -> int:
    """Tokens of what a page tells of what was found."""
    assert view.compaction
    return within.counter.count(text(view.compaction.event.summary.digest.findings))


def test_what_is_read_grows_by_a_third_of_what_is_folded() -> None:
    told: list[Block] = [make.prompt("go", "t0")]
    for n in range(40):
        text = f"Row {n}: " + f"entry {n} is {n * 37} EUR and settled. " * 25
        told += [make.said(text, f"t{n}"), make.prompt(f"Question {n}.", f"t{n + 1}")]
    folded = sum(context().counter.count(text_of(block)) for block in told)
    within = context(policy=steady(page_tokens=1_000_000))
    assert folded / 4 <= sum(_page(*told, within=within).values()) <= folded / 3
