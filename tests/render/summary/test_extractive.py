"""The extractive summary: quotations, computed from what was folded, and bounded."""

import msgspec

from blocks import Decision, TurnId
from render.summary._extractive import extract_summary
from tests._builders import call, prompt, result, said, view_of
from tests.render.summary.samples import count

# The extractive summary.


def test_it_quotes_where_the_agent_said_it_stood() -> None:
    view = view_of(prompt("go"), said("I begin."), said("I am half way."))
    found = extract_summary(view.entries, (), lambda _: True)
    assert found.state.endswith("I am half way.")


def test_it_quotes_the_users_demands_that_are_not_carried_whole() -> None:
    text = "Please build it. You must not touch main.py. It is nice weather. Never use eval."
    view = view_of(prompt(text))
    assert extract_summary(view.entries, (), lambda _: True).constraints == ()
    demands = extract_summary(view.entries, (), lambda _: False).constraints
    assert demands == ("You must not touch main.py.", "Never use eval.")


def test_what_the_user_decided_is_no_demand_as_well() -> None:
    """A sentence is quoted once; a decision with the turn that it was made in."""
    text = "We decided to use DuckDB. We decided that you must not use SQLite."
    found = extract_summary(view_of(prompt(text, "t7")).entries, (), lambda _: False)
    assert found.constraints == ("We decided that you must not use SQLite.",)
    assert found.decisions == (Decision(decision="We decided to use DuckDB.", turn=TurnId("t7")),)


def test_it_is_bounded_whatever_was_said() -> None:
    view = view_of(prompt("must " * 9000), *(said("word " * 5000) for _ in range(5)))
    found = extract_summary(view.entries, view.entries, lambda _: False)
    assert count(msgspec.json.encode(found).decode()) < 2000


def test_it_says_what_is_open_of_the_newest_list_of_steps() -> None:
    """Of a call with objects that have a status each; a call without such says nothing of it."""
    old = call("c1", todos=[{"content": "Write it", "status": "pending"}])
    rows = [{"step": "Write it", "status": "completed"}, {"step": "Test it", "status": "pending"}]
    view = view_of(prompt("go"), old, result("c1"), call("c2", plan=rows), result("c2"), call("c3"))
    found = extract_summary(view.entries, (), lambda _: True)
    assert found.plan == "1 of 2 steps are done\n- [pending] Test it"


def test_its_state_is_the_newest_whatever_turn_it_is_of() -> None:
    view = view_of(prompt("go"), said("The old turn ends."), prompt("on", "t2"), said("New.", "t2"))
    prefix = [entry for entry in view.entries if entry.block.turn == "t2"]
    found = extract_summary(view.entries, prefix, lambda _: True)
    assert found.state.endswith("New.")
