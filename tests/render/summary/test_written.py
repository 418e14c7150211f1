"""A model updates the written part of a page: what it does not mention stays, and what it closes goes."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from blocks import Decision, ErrorRecord, NamedList, OpenItem, StructuredSummary, Work
from render import SummaryRoom, merge_summaries
from render.summary._written import (
    GAP,
    GROWTH,
    HELD,
    HELD_FAST,
    format_written,
    numbered,
    report_history,
    updated,
    written_text,
)
from tests._table import for_each
from tests.render.summary.samples import count, summaries

BEFORE = StructuredSummary(
    task="Settle the books.",
    state="On March.",
    plan="Then April.",
    turn_context="It began.",
    constraints=("Never touch db-2!", "Amounts in cents."),
    facts=("The port is 48231.", "Account 3 is in CHF.", "A fee. (evidence: a (2))"),
    decisions=(Decision(decision="Use CHF.", reason="the bank does", rejected="EUR: rounded"),),
    open_items=(OpenItem(item="Account 4", priority="high"), OpenItem(item="Account 5")),
    errors=(ErrorRecord(error="row_7 is locked"),),
    lists=(NamedList(title="Accounts", items=("1 done", "2 open", "3 open")),),
    completed=(
        Work(component="Account 1", action="done", description="settled"),
        Work(component="The ledger", action="read", description="It is old."),
    ),
    quoted=1,
    complete=True,
)


PLENTY = SummaryRoom(history=10**6, prefix=10**6, count=count)


def after(**update: Any) -> StructuredSummary:
    summary, notices = updated(BEFORE, update)
    assert notices == ()
    return summary


def changed(summary: StructuredSummary) -> set[str]:
    """The fields that differ from those before."""
    fields = StructuredSummary.__struct_fields__
    return {name for name in fields if getattr(summary, name) != getattr(BEFORE, name)}


# The update.


def test_what_an_update_does_not_mention_stays_word_for_word() -> None:
    summary = after(
        state="On April.", add={"findings": [{"finding": "New.", "evidence": "a.py:3"}]}
    )
    assert changed(summary) == {"state", "facts"}
    assert summary.facts == (*BEFORE.facts, "New. (evidence: a.py:3)")


def ids_of(summary: StructuredSummary) -> str:
    """The entries with their ids, without their tokens."""
    return re.sub(r"^( *\w[\w.]*) \[\d+\]\.", r"\1.", numbered(summary, PLENTY), flags=re.MULTILINE)


@for_each(
    ("change", "fields", "line"),
    [
        ({"id": "f2", "finding": "Account 3 is in EUR."}, {"facts"}, "f3. Account 3 is in EUR."),
        (
            {"id": "f2", "evidence": "page 3"},
            {"facts"},
            "f3. Account 3 is in CHF. (evidence: page 3)",
        ),
        ({"id": "f3", "evidence": "b (1)"}, {"facts"}, "f3. A fee. (evidence: b (1))"),
        ({"id": "f3", "finding": "Fees."}, {"facts"}, "f3. Fees. (evidence: a (2))"),
        ({"id": "f3", "finding": "Fees. (evidence: c)"}, {"facts"}, "f3. Fees. (evidence: c)"),
        ({"id": "f3", "evidence": ""}, {"facts"}, "f3. A fee."),
        (
            {"id": "d1", "rejected": "EUR and USD"},
            {"decisions"},
            "d1. Use CHF, because the bank does; rejected: EUR and USD",
        ),
        ({"id": "o2", "priority": "low"}, {"open_items"}, "o2. [low] Account 5"),
        ({"id": "[O2]", "item": "Account 6"}, {"open_items"}, "o2. [medium] Account 6"),
        ({"id": "e1", "resolution": "waited"}, {"errors"}, "e1. row_7 is locked -> waited"),
        ({"id": "l1.2", "item": "2 done"}, {"lists"}, "  l1.2. 2 done"),
        ({"id": "l1", "add": ["4 new"]}, {"lists"}, "  l1.4. 4 new"),
        ({"id": "l1.2", "add": ["4 new"]}, {"lists"}, "  l1.4. 4 new"),
        ({"id": "l1", "title": "All accounts"}, {"lists"}, "l1. All accounts:"),
        ({"id": "l1", "items": ["1", "2"]}, {"lists"}, "  l1.2. 2"),
        ({"id": "w1", "outcome": "settled twice"}, {"completed"}, "w2. Account 1: settled twice"),
    ],
)
def test_an_entry_is_changed_by_its_id_in_the_fields_that_are_named(
    change: dict[str, Any], fields: set[str], line: str
) -> None:
    summary = after(change=[change])
    assert changed(summary) == fields
    assert line in ids_of(summary).split("\n")


def test_an_open_item_that_is_closed_is_work_with_its_outcome() -> None:
    summary = after(close=[{"id": "o1", "outcome": "settled"}])
    assert summary.open_items == BEFORE.open_items[1:]
    closed = Work(component="Account 4", action="done", description="settled")
    assert closed in summary.completed
    named = after(close=[{"id": "o1", "outcome": "settled", "what": "The fourth account"}])
    assert named.completed[-1].component == "The fourth account", (
        "under another name, if it has one"
    )
    assert after(close=["o1"]).completed == BEFORE.completed, "without an outcome it just goes"


def test_an_error_that_is_closed_once_has_its_resolution_and_any_other_entry_goes() -> None:
    summary = after(close=[{"id": "e1", "outcome": "waited"}, "f1", {"id": "d1"}, {"id": "l1.1"}])
    assert summary.errors == (ErrorRecord(error="row_7 is locked", resolution="waited"),)
    assert summary.facts == BEFORE.facts[1:]
    assert summary.decisions == ()
    assert summary.lists[0].items == ("2 open", "3 open")
    again, _ = updated(summary, {"close": [{"id": "e1", "outcome": "no longer needed"}]})
    assert again.errors == ()


def test_ids_mean_what_was_shown_however_many_entries_are_closed_and_added() -> None:
    summary = after(
        add={"findings": ["New."]},
        close=["f1"],
        change=[{"id": "f2", "finding": "Changed."}],
    )
    assert summary.facts == (BEFORE.facts[2], "Changed.", "New."), "what is touched comes last"


@for_each("name", ["f0", "f4", "x1", "", "f", "l1.9", "o1.1", "turn", None, 7, "f" + "9" * 50])
def test_an_unknown_id_loses_nothing_of_the_answer_and_is_noticed(name: object) -> None:
    for update in ({"close": [{"id": name}]}, {"change": [{"id": name, "finding": "x"}]}):
        summary, [notice] = updated(BEFORE, {"state": "On April.", **update})
        assert changed(summary) == {"state"}
        assert "there is no entry" in notice


def test_a_model_cannot_say_which_constraints_are_the_users() -> None:
    summary = after(quoted=9, add={"constraints": ["New."]}, close=["c2"])
    assert summary.quoted == 1
    assert summary.constraints == ("Never touch db-2!", "New.")
    assert after(close=["c1"]).quoted == 0


def test_completed_work_that_is_no_longer_true_may_be_closed() -> None:
    assert "w2. The ledger: read: It is old." in ids_of(BEFORE)
    assert after(close=["w2"]).completed == BEFORE.completed[:1]


@for_each(
    ("given", "facts"),
    [
        ({"findings": ["a"]}, ("a",)),
        ({"facts": ["a"]}, ("a",)),
        ({"add": {"facts": "a"}}, ("a",)),
        ({"add": {"findings": [{"fact": "a"}, {"text": "b"}]}}, ("a", "b")),
        ({"add": {"findings": [{"finding": ["a", "b"], "evidence": {"file": "c"}}]}}, ("a; b (evidence: file: c)",)),
        ({"add": {"findings": {"finding": "a"}}}, ("a",)),
    ],
)  # fmt: skip
def test_entries_are_taken_in_whatever_form_they_come(
    given: dict[str, Any], facts: tuple[str, ...]
) -> None:
    assert after(**given).facts == (*BEFORE.facts, *facts)


def test_a_text_is_replaced_if_it_is_given_and_the_goal_is_never_emptied() -> None:
    assert changed(after(goal="", state="", next="May.", turn_context="")) == {
        "state",
        "plan",
        "turn_context",
    }
    assert after(goal="Settle April, too.").task == "Settle April, too."


@for_each("update", [{}, {"state": ""}, {"add": {}}, {"close": ["f9"]}, {"facts": 1}])
def test_an_update_of_which_nothing_can_be_used_is_an_error(update: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        updated(BEFORE, update)


NAMES = [
    "add",
    "change",
    "close",
    "id",
    "finding",
    "findings",
    "open",
    "item",
    "items",
    "lists",
    "priority",
    "state",
    "goal",
    "done",
    "tool",
    "outcome",
    "tool_outcomes",
]
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["f1", "l1.2", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(summaries(), st.dictionaries(st.sampled_from(["add", "change", "close", "state"]), JSON))
def test_any_json_is_an_update_or_an_error_with_a_reason(
    before: StructuredSummary, update: dict[str, Any]
) -> None:
    try:
        summary, _ = updated(before, update)
    except ValueError as error:
        summary, why = before, str(error)
        assert why
    assert isinstance(format_written(summary) + ids_of(summary), str)


# The text, and its room.


def test_each_entry_has_an_id_and_stands_under_its_heading() -> None:
    sections = dict(written_text(BEFORE))
    assert sections["Goal"] == "Settle the books."
    assert sections["Open items"] == "- [high] Account 4\n- [medium] Account 5"
    assert sections["Lists"] == "- Accounts:\n  - 1 done\n  - 2 open\n  - 3 open"
    assert "d1. Use CHF, because the bank does; rejected: EUR: rounded" in ids_of(BEFORE)
    port = count("The port is 48231.")
    assert f"f1 [{port}]. The port is 48231." in numbered(BEFORE, PLENTY), "and its tokens"


@given(summaries(), st.integers(0, 300))
def test_a_complete_summary_takes_the_place_of_the_one_before_and_fits(
    before: StructuredSummary, history: int
) -> None:
    room = SummaryRoom(history=history, prefix=30, count=count)
    merged = merge_summaries(before, BEFORE, room)
    assert count(report_history(merged)) <= history
    assert merged == merge_summaries(None, BEFORE, room)
    assert merge_summaries(None, merged, room) == merged


def test_what_is_finished_and_old_goes_first_and_goal_demands_and_open_items_last() -> None:
    many = StructuredSummary(
        task="Goal.",
        constraints=("Never!",),
        open_items=(OpenItem(item="to do"),),
        facts=tuple(f"fact {n}" for n in range(10)),
        errors=(ErrorRecord(error="solved", resolution="so"), ErrorRecord(error="not solved")),
        completed=tuple(Work(component=f"part {n}", action="done") for n in range(10)),
        complete=True,
    )
    left = [
        merge_summaries(None, many, SummaryRoom(history=most, prefix=0, count=count))
        for most in range(count(report_history(many)), 0, -1)
    ]
    for summary in left:
        newest = many.facts[10 - len(summary.facts) :]
        assert summary.facts[1:] == newest[1:], "the oldest goes first; the last to go may be cut"
        if len(summary.facts) < len(many.facts):
            assert summary.completed == ()
            assert len(summary.errors) <= 1
        if any(len(getattr(summary, name)) < 1 for name in HELD_FAST):
            assert not summary.facts
            assert not summary.errors


UNRESOLVED = {*BEFORE.errors}
SENTENCES = st.lists(
    st.text("abcdefgh ", min_size=20, max_size=160).map(str.strip).filter(bool), max_size=6
)


@st.composite
def updates(draw: st.DrawFn) -> dict[str, Any]:
    """Of the length that a model writes: some of what was there is touched, and much is new."""
    done = [{"what": text[:20], "outcome": text} for text in draw(SENTENCES)]
    errors = [{"error": text, "resolution": text[:9]} for text in draw(SENTENCES)]
    change = [{"id": f"f{n}", "evidence": "x"} for n in draw(st.sets(st.integers(1, 9)))]
    add = {"findings": draw(SENTENCES), "done": done, "errors": errors}
    return {"state": "On it.", "add": add, "change": change}


def test_what_goes_first_for_an_answer_is_marked_before() -> None:
    facts = tuple(f"The port of account {n} is {n * 7}." for n in range(20))
    full = structs.replace(BEFORE, completed=(), errors=(), facts=facts)
    room = SummaryRoom(history=count(report_history(full)), prefix=30, count=count)
    marked = re.findall(r"^(\w+) \[\d+\]!\.", numbered(full, room), re.MULTILINE)
    assert "]!" not in numbered(full, PLENTY)
    more = [f"{'new ' * 9}{n}" for n in range(3)]
    assert sum(map(count, more)) < GROWTH * room.history
    update, _ = updated(full, {"add": {"findings": more}})
    fitted = merge_summaries(full, update, room)
    gone = [f"f{n}" for n, fact in enumerate(facts, 1) if fact not in fitted.facts]
    assert gone
    assert gone == marked[: len(gone)]


@given(st.lists(updates(), min_size=1, max_size=6), st.integers(220, 500))
def test_fold_after_fold_only_what_is_needed_goes_the_untouched_first(
    told: list[dict[str, Any]], history: int
) -> None:
    room = SummaryRoom(history=history, prefix=30, count=count)
    summary = merge_summaries(None, BEFORE, room)
    for update in told:
        given, _ = updated(summary, update)
        fitted = merge_summaries(summary, given, room)
        assert merge_summaries(summary, fitted, room) == fitted
        if count(report_history(given)) > history:
            assert 0.9 * history <= count(report_history(fitted)) <= history
        else:
            assert fitted == given
        old = {*summary.completed, *summary.errors, *summary.facts}
        for rank, name in enumerate(names := ("completed", "errors", "facts")):
            there = {e for n in names[: rank + 1] for e in getattr(fitted, n)} - UNRESOLVED
            lost = {*getattr(given, name)} - {*getattr(fitted, name)} - old
            assert not lost or not there & old, "nothing new goes while the like or less is there"
        for name in (*HELD, *HELD_FAST):
            assert getattr(fitted, name) == getattr(BEFORE, name)
        summary = fitted


@given(summaries(), st.integers(0, 80), st.integers(1, 40))
def test_a_list_that_does_not_fit_says_so_and_keeps_its_newest_items(
    before: StructuredSummary, history: int, number: int
) -> None:
    items = tuple(f"case {n} is open" for n in range(number))
    summary = structs.replace(before, lists=(NamedList(title="Cases", items=items),), complete=True)
    room = SummaryRoom(history=history, prefix=0, count=count)
    fitted = merge_summaries(None, summary, room)
    assert count(report_history(fitted)) <= history
    for left in fitted.lists:
        shown = tuple(item for item in left.items if item != GAP)
        assert shown == items[number - len(shown) :]
        assert shown == items or left.items[:1] == (GAP,) or not shown
