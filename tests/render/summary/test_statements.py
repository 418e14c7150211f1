"""What an agent stated is told; what it announced, asked or guessed is not."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, StructuredSummary, Work
from render import SummaryRoom, merge_summaries
from render.summary._extractive import (
    _CAUSE,
    _DECISION,
    _DENIAL,
    _GUESS,
    LAST_MAX,
    STATEMENT_CHARACTERS,
    TEXT_MAX,
    _Kind,
    by_worth,
    statements,
)
from render.summary._text import FOUND, format_written
from tests._builders import CharCounter, call, prompt, result, said, view_of
from tests._table import for_each

ROOM = SummaryRoom(history=800, prefix=400, count=CharCounter().count)


def told(*blocks: Block) -> list[str]:
    return [statement for statement, _ in statements(view_of(*blocks).entries)]


@for_each(
    "stated",
    [
        "The cause is that `parse_amount` drops the sign.",
        "All 214 tests pass after the change to ledger.py.",
        "Rounding is decided per line instead of per invoice.",
        "This is not a race: the queue has one reader.",
        "So the bump of the lockfile is the trigger.",
        "That means the offset is counted twice.",
        "You're right, the reply is about another branch.",
        "The version of explain.go is better.",
        "Die Ursache liegt in buchung_lesen: Zeile 48231 hat kein Vorzeichen.",
        "原因は parse_amount が 48231 行で符号を落とすことです。",
    ],
)
def test_a_result_a_cause_a_decision_is_told_word_for_word(stated: str) -> None:
    assert told(prompt("go"), said(f"{stated} Let me look further.")) == [stated]


@for_each(
    ("kind", "phrases"),
    [
        (_CAUSE, "due to; turns out; this means; that's why; the old bug; an odd risk; a two-part fix"),
        (_CAUSE, "the issue; a problem; the gap; an insight; a difference; the finding; a failure; the trigger"),
        (_CAUSE, "a regression; the limitation; which means; that is why"),
        (_DECISION, "instead of; rather than; you're right; you’re right; i was wrong; good point; good catch"),
        (_DECISION, "the approach is; the pattern is; the rule is"),
        (_DENIAL, "no longer"),
        (_GUESS, "i think; i guess; i suspect; i wonder; doesn't make sense"),
    ],
)  # fmt: skip
def test_every_phrase_is_looked_for(kind: _Kind, phrases: str) -> None:
    """A sentence without any of the words that phrases have is not searched."""
    for phrase in phrases.split("; "):
        text = f"so {phrase} it"
        assert kind.is_in(text, set(re.findall(r"\w+", text))), phrase


@for_each(
    "text",
    [
        "Let me check why the test in ledger_test.py fails.",
        "Now I'll run all the tests again.",
        "Should I remove the old parser, or keep it?",
        "Maybe the clock is the problem.",
        "```\nthe cause is in this code: parse_amount(48231)\n```",
        "| test_a | failed |",
        "Hm.",
    ],
)
def test_a_plan_a_question_a_guess_and_code_are_not(text: str) -> None:
    assert told(prompt("go"), said(text)) == []


def test_a_very_short_one_comes_with_the_sentence_that_explains_it() -> None:
    text = "Found the bug. The `total` in sum.py is never reset."
    assert told(prompt("go"), said(text)) == [text]


def test_a_result_that_a_list_follows_is_one_as_well() -> None:
    stated = "The new logs show that the checkpoint succeeded:"
    text = f"Let me read what the hook has printed.\n{stated}\n\n- trailer\n- commit"
    assert told(prompt("go"), said(text)) == [stated]


def test_of_the_text_that_ends_a_turn_more_is_told() -> None:
    long = " ".join(f"Check number {n} failed because of row-{n}." for n in range(20))
    blocks: list[Block] = [
        prompt("go"),
        said(long),
        call("c"),
        result("c"),
        said(long),
        prompt("on", "t2"),
    ]
    assert len(told(*blocks)) == TEXT_MAX + LAST_MAX


@given(st.lists(st.text("ab.?! \n`*|1_-é", max_size=400), max_size=4))
def test_every_statement_is_quoted_and_short(texts: Sequence[str]) -> None:
    said_words = " ".join(texts).replace("**", "").split()
    for statement in told(prompt("go"), *(said(text or "x") for text in texts)):
        assert len(statement) <= STATEMENT_CHARACTERS + 2
        assert set(statement.removesuffix(" …").split()) <= set(said_words)


# Those that stay.


def found(text: str, turn: str = "t1") -> Work:
    return Work(component=turn, action=FOUND, description=text)


def test_the_worthier_goes_before_the_newer_and_what_is_told_again_last() -> None:
    told = [
        "The root cause is a missing sign in parse_amount, line 48231.",
        "Lint passes.",
        "The root cause is a missing sign in parse_amount, line 48232.",
    ]
    assert list(by_worth(told)) == [2, 1, 0]


@given(st.integers(0, 30))
def test_what_the_state_quotes_is_told_once_and_takes_no_room(said: int) -> None:
    """It stays in the summary all the same: the state will be another one."""
    told = tuple(
        found(f"Run {n} failed because of row-{n}. {'y' * 90}", f"t{n}") for n in range(31)
    )
    summary = StructuredSummary(completed=told, state=told[said].description)
    apart = StructuredSummary(completed=(*told[:said], *told[said + 1 :]))
    kept = merge_summaries(None, summary, ROOM)
    assert told[said] in kept.completed
    others = tuple(work for work in kept.completed if work != told[said])
    assert others == merge_summaries(None, apart, ROOM).completed
    assert format_written(kept).count(told[said].description) == 1


def test_statements_are_shown_under_their_turn() -> None:
    told = (found("A is done."), found("B is done."), found("C is done.", "t2"))
    text = format_written(StructuredSummary(completed=told))
    assert text == "## Found and decided\nt1:\n- A is done.\n- B is done.\nt2:\n- C is done."


def test_statements_take_nothing_from_what_somebody_wrote_nor_that_from_them() -> None:
    written = StructuredSummary(
        completed=tuple(Work(component=f"part {n}", action="x" * 300) for n in range(30))
    )
    quoted = StructuredSummary(
        completed=tuple(found(f"Run {n} failed: {'y' * 300}") for n in range(30))
    )
    both = merge_summaries(written, quoted, ROOM).completed
    alone = [merge_summaries(None, one, ROOM).completed for one in (written, quoted)]
    assert both == (*alone[0], *alone[1])


def test_a_cause_outlives_any_number_of_lesser_statements() -> None:
    cause = found("The root cause is not the cache: `parse_amount` drops the sign in line 48231.")
    summary = StructuredSummary(completed=(cause,))
    steps = [
        found(f"Step {number} is done with {'words ' * (number % 9)}.", f"t{number}")
        for number in range(300)
    ]
    for lesser in steps:
        summary = merge_summaries(summary, StructuredSummary(completed=(lesser,)), ROOM)
    assert cause in summary.completed
    assert summary.completed[-1] == steps[-1], "among equals the newest stay"
    assert sum(map(ROOM.size, summary.completed)) <= ROOM.history
