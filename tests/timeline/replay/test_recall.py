"""Recall: what of the needed names a request still has, by name, by line and widely."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import text_of
from persistence.sessions import Session
from render import Policy, Provider, provider_of
from tests import _builders as make
from tests._table import for_each
from tests.timeline.replay.invented import invented
from tests.timeline.replay.talk import talk
from timeline.replay import ReplayOptions, replay
from timeline.replay._recall import (
    CallRecall,
    Need,
    Needs,
    RecallMeter,
    RequestTexts,
    around,
    needs_of,
    rare_names,
    recall_of,
    share_found,
)

PROVIDER = provider_of(make.LOOSE)
CONTEXT = "the value of old_name is seven"
NEED = Need("old_name", (CONTEXT,), (f"before\n{CONTEXT}\nafter",))


def history(session: Session) -> str:
    """Everything that was ever there."""
    return "\n".join(text_of(block) for item in session.items for block in item.blocks)


@attrs.frozen
class Request:
    """The part of a rendered request that is measured."""

    messages: tuple[dict[str, Any], ...] = ()
    system: tuple[dict[str, Any], ...] = ()
    provider: Provider = PROVIDER


def request(*content: dict[str, Any], system: str = "") -> Any:
    texts = ({"type": "text", "text": system},) if system else ()
    return Request(({"role": "user", "content": list(content)},), texts)


@for_each(
    ("text", "expected"),
    [
        ("", (0, 0, 0)),
        ("names: old_name, other_name", (1, 0, 0)),
        (f"> {CONTEXT}", (1, 1, 0)),
        (f"before\n{CONTEXT}\nafter", (1, 1, 1)),
        ("the value of old_ name is seven", (0, 0, 0)),
    ],
)
def test_a_bare_name_a_line_and_its_neighbours_are_three_measures(
    text: str, expected: tuple[int, int, int]
) -> None:
    found = recall_of(Needs(far=(NEED,)), text)
    assert (found.far, found.far_context, found.far_wide) == expected


def test_any_of_the_last_occurrences_will_do() -> None:
    need = Need("old_name", ("here old_name was", "and old_name there"), ("x old_name y z",))
    assert recall_of(Needs(far=(need,)), "so here old_name was").far_context == 1
    assert recall_of(Needs(far=(need,)), "so and old_name there").far_context == 1


def test_a_name_that_never_had_surroundings_needs_none() -> None:
    found = recall_of(Needs(far=(Need("old_name"),)), "old_name")
    assert (found.far_context, found.far_wide) == (1, 1)
    missing = recall_of(Needs(far=(Need("old_name"),)), "")
    assert (missing.far_context, missing.far_wide) == (0, 0)


EXCERPT = "one line above\nthe value of old_name is seven\nanother one below"


@for_each(
    ("text", "share"),
    [
        ("old_name", 0.0),
        (EXCERPT, 1.0),
        ("  2→the value of old_name is seven", 30 / 61),
        ("another one below; the value of old_name is seven", 47 / 61),
        ("one line above\nanother one below", 0.0),
    ],
)
def test_surroundings_are_a_share_of_what_stood_around_a_name(text: str, share: float) -> None:
    need = Need("old_name", texts=(EXCERPT,))
    assert recall_of(Needs(far=(need,)), text).surroundings == pytest.approx(share)


def test_of_the_last_texts_the_one_that_is_there_best_counts() -> None:
    need = Need("old_name", texts=("old_name was here", "old_name and something else"))
    assert recall_of(Needs(far=(need,)), "old_name was here").surroundings == 1


@given(st.text("ab\n", max_size=60), st.text("ab\n", max_size=60), st.integers(0, 40))
def test_no_width_sees_more_than_the_text_has(before: str, after: str, width: int) -> None:
    seen = f"{before}old_name{after}"
    excerpt = around(seen, "old_name", width)
    assert excerpt in seen
    assert len(excerpt) == len("old_name") + min(width, len(before)) + min(width, len(after))
    assert share_found(excerpt, seen) == 1
    assert 0 <= share_found(seen, excerpt) <= 1


def test_near_and_rules_are_shares_too() -> None:
    needs = Needs(near=(Need("a_name"), Need("b_name")), rules=("Never push.", "Be quick."))
    assert recall_of(needs, "a_name; Never push.") == CallRecall(near=0.5, rules=0.5)


def test_a_call_that_needed_nothing_says_nothing() -> None:
    assert recall_of(Needs(), "anything") == CallRecall()
    memory = RecallMeter((Needs(), Needs(far=(NEED,))))
    memory.measure(0, "")
    assert memory.recall.far is None
    memory.measure(1, "old_name")
    assert memory.recall.far_context == 0
    assert memory.recall.near is memory.rules is None


def test_every_call_counts_the_same_however_much_it_needed() -> None:
    many = Needs(far=tuple(Need(f"name_{n}") for n in range(9)))
    memory = RecallMeter((many, Needs(far=(NEED,))))
    for call in (0, 1):
        memory.measure(call, "old_name")
    assert memory.recall.far == 0.5


words = st.sampled_from(
    ["old_name", "src/main.py", "rest", "of", "it", "\n", "value_of_x", "12345"]
)
texts = st.lists(words, max_size=12).map(" ".join)
sessions = st.lists(st.tuples(texts, texts), min_size=1, max_size=12).map(lambda r: talk(*r))


@given(sessions)
def test_the_full_history_has_everything_and_nothing_has_nothing(session: Session) -> None:
    everything = history(session)
    for needs in needs_of(session):
        assert set(attrs.astuple(recall_of(needs, everything))) <= {None, 1.0}
        assert set(attrs.astuple(recall_of(needs, ""))) <= {None, 0.0}


@given(sessions, st.integers(0, 400), st.integers(0, 400))
def test_more_text_never_has_less_and_wide_is_hardest(session: Session, a: int, b: int) -> None:
    everything = history(session)
    less, more = everything[: min(a, b)], everything[: max(a, b)]
    for needs in needs_of(session):
        before, after = recall_of(needs, less), recall_of(needs, more)
        assert all(
            x is None or x <= y
            for x, y in zip(attrs.astuple(before), attrs.astuple(after), strict=True)
        )
        assert after.far is None or after.far >= max(after.far_context or 0, after.far_wide or 0)


@given(sessions)
def test_what_is_needed_had_been_there_before(session: Session) -> None:
    for needs in needs_of(session):
        for need in (*needs.near, *needs.far):
            assert need.name in history(session)
            assert all(need.name in around for around in (*need.lines, *need.wides))
        found = rare_names(history(session))
        assert {need.name for need in (*needs.near, *needs.far)} <= found


def test_a_request_is_read_in_all_that_the_model_sees_of_it() -> None:
    result = [{"type": "text", "text": "from_a_tool"}, {"type": "image", "source": {}}]
    text = RequestTexts().of(
        request(
            {"type": "text", "text": "from_a_text"},
            {"type": "tool_use", "id": "i", "name": "run", "input": {"path": 'a\\b "c"\n'}},
            {"type": "tool_result", "tool_use_id": "i", "content": result},
            {"type": "tool_result", "tool_use_id": "j", "content": "as_a_string"},
            {"type": "thinking", "thinking": "not_this", "signature": "nor_this"},
            system="from_the_system",
        )
    )
    for seen in (
        "from_a_text",
        "from_a_tool\n[image]",
        "as_a_string",
        "from_the_system",
        'a\\b "c"',
    ):
        assert seen in text
    assert "_this" not in text


def test_a_marked_block_is_read_like_any_other() -> None:
    words, block = RequestTexts(), {"type": "text", "text": "first"}
    marked = {"type": "text", "text": "second", "cache_control": {"type": "ephemeral"}}
    assert words.of(request(block, marked)) == "first\nsecond"
    assert words.of(request(block, marked)) == "first\nsecond"


# In a replay.


def test_only_calls_whose_full_history_exceeds_the_window_are_measured() -> None:
    roomy = replay(invented(), ReplayOptions(window=100_000, counter="estimate"))
    assert (roomy.recall.far, roomy.recall.near, roomy.rules) == (None, None, None)
    assert set(roomy.to_json()["recall"].values()) == {None}


def test_rules_are_kept_and_a_policy_without_them_loses_them() -> None:
    small = ReplayOptions(window=3_000, counter="estimate")
    assert replay(invented(), small).rules == 1
    forgetful = Policy(
        name="forgetful", user_ratio=0.0, page_tokens=0, working_ratio=0.0, summary_tokens=0
    )
    lost = replay(invented(), attrs.evolve(small, policy=forgetful)).rules
    assert lost is not None
    assert lost < 1
