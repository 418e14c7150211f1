"""What a cleared result leaves behind, and who says what may become of it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Envelope
from render import Place, ToolPolicy
from render.compaction._ladder_steps import (
    ToolAnswer,
    placeholder,
)
from tests import _builders as make
from tests._table import for_each

NONE = ToolPolicy()
PLENTY = 1000


def count(text: str) -> int:
    return len(text.split())


def answer(
    text: str = "ok",
    *,
    policy: ToolPolicy = NONE,
    arguments: dict[str, Any] | None = None,
    **envelope: Any,
) -> ToolAnswer:
    asked = make.call("c", "t1", "r", "make_test", **(arguments or {"command": "make  test"}))
    result = make.result("c", text, envelope=Envelope(**envelope))
    view = make.view_of(make.prompt("Go."), asked, result)
    (entry,) = (entry for entry in view.entries if entry.place is Place.RESULT)
    return ToolAnswer(
        group=view.groups[-1], entry=entry, result=result, call=asked, tokens=0, policy=policy
    )


# The policy over the tool.


@for_each("durability", ["ephemeral", "anchoring", "replayable", "non-replayable"])
def test_durability_is_what_the_tool_declared_unless_the_policy_says_otherwise(
    durability: Any,
) -> None:
    assert answer(durability=durability).durability == durability
    assert answer(policy=ToolPolicy(durability=durability)).durability == durability
    assert answer().durability == "anchoring"


def test_sensitivity_is_what_the_tool_declared_unless_the_policy_says_otherwise() -> None:
    assert answer(sensitivity="restricted").sensitivity == "restricted"
    public = ToolPolicy(sensitivity="public")
    assert answer(sensitivity="restricted", policy=public).sensitivity == "public"
    assert answer().sensitivity == "internal"


ORDER = '{"order": {"id": 7, "total": 12.5}, "lines": ["x"]}'


@for_each(
    ("text", "wanted", "declared", "kept"),
    [
        (ORDER, ("order.id", "lines.0"), {}, {"order.id": 7, "lines.0": "x"}),
        (ORDER, ("order.id",), {"exit_code": 0}, {"order.id": 7, "exit_code": 0}),
        (ORDER, ("order.id",), {"order.id": 8}, {"order.id": 8}),
        (ORDER, (), {"exit_code": 0}, {"exit_code": 0}),
        (ORDER, ("nothing",), {}, {}),
        ("no JSON", ("order.id",), {"exit_code": 0}, {"exit_code": 0}),
    ],
)
def test_key_fields_are_those_declared_and_those_that_the_policy_wants(
    text: str, wanted: tuple[str, ...], declared: dict[str, Any], kept: dict[str, Any]
) -> None:
    result = answer(text, policy=ToolPolicy(key_fields=wanted), key_fields=declared)
    assert result.key_fields == kept


# The placeholder.


def test_a_placeholder_says_what_was_asked_how_it_ended_and_where_the_rest_is() -> None:
    one = answer("\n  make: no rule \nmore", outcome="failure", key_fields={"exit_code": 2})
    assert placeholder(one, PLENTY, count) == (
        '[cleared: make_test make test; failure; {"exit_code":2}; error: make: no rule; '
        "read back at tc:t1.c.result]"
    )


@for_each(
    ("envelope", "arguments", "text"),
    [
        ({}, {}, "make_test make test; success"),
        ({}, {"n": 1}, "make_test; success"),
        ({"outcome": "partial"}, {"n": 1}, "make_test; partial"),
        ({"outcome": "failure"}, {"n": 1}, "make_test; failure; error: ok"),
    ],
)
def test_a_placeholder_leaves_out_what_there_is_not(
    envelope: dict[str, Any], arguments: dict[str, Any], text: str
) -> None:
    one = answer(**envelope, arguments=arguments)
    assert placeholder(one, PLENTY, count) == f"[cleared: {text}; read back at tc:t1.c.result]"


@for_each("text", ["", " \n\t"])
def test_a_failure_that_says_nothing_has_no_first_line(text: str) -> None:
    one = answer(text, outcome="failure", arguments={"n": 1})
    assert placeholder(one, PLENTY, count) == (
        "[cleared: make_test; failure; read back at tc:t1.c.result]"
    )


@for_each(("length", "shown"), [(159, "x" * 159), (160, "x" * 160), (161, "x" * 159 + "…")])
def test_a_line_of_a_placeholder_has_at_most_160_characters(length: int, shown: str) -> None:
    """Of what the call was for and of an error; one that is cut ends in a sign that says so."""
    one = answer("x" * length, outcome="failure", arguments={"command": "x" * length})
    assert placeholder(one, PLENTY, count) == (
        f"[cleared: make_test {shown}; failure; error: {shown}; read back at tc:t1.c.result]"
    )


@for_each("fields", [{}, {"id": 7}])
def test_what_just_fits_is_shown(fields: dict[str, Any]) -> None:
    one = answer(key_fields=fields)
    whole = placeholder(one, PLENTY, count)
    assert placeholder(one, count(whole), count) == whole
    assert placeholder(one, count(whole) - 1, count) != whole


def test_fields_of_a_placeholder_have_one_order_whatever_order_they_came_in() -> None:
    given = {"b": {"y": 1, "x": 2}, "a": "é"}
    turned = {"a": "é", "b": {"x": 2, "y": 1}}
    one, other = (placeholder(answer(key_fields=f), PLENTY, count) for f in (given, turned))
    assert one == other
    assert '{"a":"é","b":{"x":2,"y":1}}' in one


def test_the_policy_s_fields_are_in_the_placeholder() -> None:
    one = answer(ORDER, policy=ToolPolicy(key_fields=("order.id",)))
    assert '{"order.id":7}' in placeholder(one, PLENTY, count)


def test_what_does_not_fit_goes_the_largest_fields_first_and_the_way_back_never() -> None:
    fields = {"id": 7, "vast": "w " * 50, "small": "w w w"}
    command = {"command": "make " + "x" * 90 + " twice"}
    one = answer("no rule", outcome="failure", key_fields=fields, arguments=command)
    shrinking: list[str] = []
    for tokens_max in range(PLENTY, -1, -1):
        text = placeholder(one, tokens_max, len)
        if not shrinking or shrinking[-1] != text:
            shrinking.append(text)
    about = ["vast", "small", '"id":7', "error: no rule", "twice", "xxx"]
    kept = [[word for word in about if word in text] for text in shrinking]
    assert kept[:7] == [
        about,
        about[1:],
        about[2:],
        about[3:],
        about[4:],
        about[5:],
        [],
    ]
    assert "(+1 more)" in shrinking[1]
    assert all(text.endswith("; read back at tc:t1.c.result]") for text in shrinking)
    assert shrinking[-1] == "[cleared; read back at tc:t1.c.result]"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5), st.integers(0, 60))
def test_a_placeholder_is_bounded_and_its_fields_are_json(
    fields: dict[str, Any], tokens_max: int
) -> None:
    text = placeholder(answer(key_fields=fields), tokens_max, count)
    assert count(text) <= max(tokens_max, count("[cleared; read back at tc:t1.c.result]"))
    full = placeholder(answer(key_fields=fields), 10**6, count)
    if fields:
        shown = full.removeprefix("[cleared: make_test make test; success; ")
        assert json.loads(shown.removesuffix("; read back at tc:t1.c.result]")) == fields
