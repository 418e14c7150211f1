"""A window that has no room for a conversation is refused, and the advice that comes with it is true."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render import View, account
from timeline.engine._settings import NoRoomError, TimelineSettings

TOOL = {"name": "bash", "input_schema": {"type": "object"}}


@given(
    st.sampled_from(["default", "frugal", "generous", "ladder", "block-timeline"]),
    st.integers(1, 3_000),
    st.integers(0, 2_000),
    st.integers(0, 500),
)
def test_who_follows_the_advice_to_a_window_without_room_has_room(
    policy: str, window: int, system: int, tools: int
) -> None:
    said = system * "word ", [{**TOOL, "description": tools * "word "}]
    small = TimelineSettings.of({"window": window, "policy": policy, "counter": "estimate"})
    try:
        small.check_room(*said)
    except NoRoomError as error:
        found = re.search(
            r"^window (\d+): .* alone need about (\d+) tokens; .* one of (\d+) tokens", str(error)
        )
        assert found is not None
        given, fixed, enough = map(int, found.groups())
        assert given == window
        assert enough == 2 * fixed
        TimelineSettings.of({"window": enough, "policy": policy, "counter": "estimate"}).check_room(
            *said
        )
    else:
        assert account(View(), small.context(*said, 0.0)).available > 0


def test_where_the_policy_leaves_no_room_a_larger_window_is_not_advised() -> None:
    """The policy `checkpoint` compacts at a number of tokens, however large the window is."""
    steady = TimelineSettings.of({"policy": "checkpoint", "window": 10**6, "counter": "estimate"})
    with pytest.raises(NoRoomError, match=r"take a policy whose trigger_tokens are more than"):
        steady.check_room(200_000 * "word ", [])


def test_tools_that_need_most_of_what_is_filled_of_a_large_window_may_fill_all_of_it() -> None:
    """By the default policy a window of a million tokens is compacted at a fifth of it."""
    roomy = TimelineSettings.of({"window": 10**6, "counter": "estimate"})
    roomy.check_room(600_000 * "word ", [])
    assert roomy.context(None, [], 0.0).capacity < 200_000
