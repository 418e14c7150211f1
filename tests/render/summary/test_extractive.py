"""The extractive summary: quotations, computed from what was folded, and bounded."""

import msgspec

from render.summary._extractive import extract_summary
from tests._builders import prompt, said, view_of
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


def test_it_is_bounded_whatever_was_said() -> None:
    view = view_of(prompt("must " * 9000), *(said("word " * 5000) for _ in range(5)))
    found = extract_summary(view.entries, view.entries, lambda _: False)
    assert count(msgspec.json.encode(found).decode()) < 2000
