"""The policy: a wrong field is refused by its name, whatever it holds and wherever it came from."""

from typing import Any

import attrs
import pytest

from blocks import ArgumentError
from render import Policy, ToolPolicy
from tests._builders import steady
from tests._table import for_each

FIELDS = [field.name for field in attrs.fields(Policy)]
NOTHING_TAKES: Any = object()


@for_each("field", FIELDS)
def test_what_a_field_cannot_hold_is_refused_by_name(field: str) -> None:
    with pytest.raises(ArgumentError, match=f"'{field}' must be"):
        Policy(**{field: NOTHING_TAKES})


@for_each(
    ("field", "value"),
    [
        *(("keep_ratio", share) for share in (1.5, -0.1, float("nan"), True, "0.5")),
        *(("failures_max", number) for number in (0, 1.0, True)),
        *(("ttl_seconds", seconds) for seconds in (-1, float("inf"))),
        ("rungs", "drop"),
        ("rungs", ["drop", "burn"]),
        ("on_failure", "ignore"),
    ],
)
def test_a_number_or_word_outside_of_what_it_means_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=field):
        Policy(**{field: value})


@for_each(
    ("field", "words"),
    [
        ("keep_ratio", "a number from 0 to 1"),
        ("ttl_seconds", "0 or more seconds"),
        ("summary_tokens", "a whole number, 0 or more"),
        ("failures_max", "a whole number, 1 or more"),
        ("compaction", "true or false"),
        ("name", "a text"),
    ],
)
def test_what_is_refused_is_told_what_would_be_right_and_what_it_was(
    field: str, words: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        steady(**{field: [None]})
    assert str(caught.value).endswith(f"'{field}' must be {words} (got [None])")


@for_each(
    ("field", "value"),
    [
        *(("keep_ratio", share) for share in (0, 1, 0.0, 0.25)),
        *(("trigger_tokens", number) for number in (None, 0, 10**9)),
        *(("failures_max", number) for number in (1, 2)),
        *(("ttl_seconds", seconds) for seconds in (0, 0.5, 86_400)),
    ],
)
def test_what_just_means_something_is_taken(field: str, value: Any) -> None:
    assert getattr(steady(**{"target_ratio": 0.0, field: value}), field) == value


def test_a_field_that_does_not_exist_is_refused_by_name() -> None:
    given: dict[str, Any] = {"kep_ratio": 0.1}
    with pytest.raises(ArgumentError, match="kep_ratio"):
        Policy(**given)


def test_a_policy_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ArgumentError, match="every call would compact"):
        steady(target_ratio=0.9, trigger_ratio=0.9)
    with pytest.raises(ArgumentError, match="intact"):
        steady(turns_visible=1, turns_intact=2)
    with pytest.raises(ArgumentError, match="both set the length of the tail"):
        steady(keep_turns=1, keep_messages=1)


def test_lists_and_tables_as_a_file_has_them_are_taken() -> None:
    given: dict[str, Any] = {"rungs": ["drop"], "tools": {"bash": {"durability": "ephemeral"}}}
    policy = Policy(**given)
    assert policy.rungs == ("drop",)
    assert policy.tools == {"bash": ToolPolicy(durability="ephemeral")}


@for_each("wrong", [{"durability": "eternal"}, {"durabilty": None}, "ephemeral"])
def test_what_is_wrong_about_a_tool_is_said_with_its_name(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"tools\.bash"):
        Policy(tools={"bash": wrong})


def test_without_rungs_or_switched_off_nothing_makes_room() -> None:
    assert steady().compacts
    assert not steady(rungs=()).compacts
    assert not steady(compaction=False).compacts
