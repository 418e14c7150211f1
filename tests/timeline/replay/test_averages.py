"""Policies side by side: means over the sessions that count, and who is on the front."""

from functools import cache
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timeline.replay.invented import invented
from timeline.replay import ReplayOptions, ReplayResult, compared, replay
from timeline.replay._recall import Recall
from timeline.replay._replay import Cost


@cache
def base() -> ReplayResult:
    """A replay whose measures are replaced."""
    return replay(invented(turns=1), ReplayOptions(counter="estimate"))


def result(policy: str, cost: float, far: float | None, **fields: Any) -> ReplayResult:
    """A replay with this share of the cost and this recall."""
    recall = Recall(far=far, far_context=far, far_wide=far)
    units = Cost(prompt=cost, summaries=0, total=cost, full_history=1.0)
    return attrs.evolve(base(), policy=policy, units=units, recall=recall, **fields)


def test_means_are_over_the_sessions_that_exceed_the_window() -> None:
    results = [result("p", 0.4, 0.8), result("p", 1.0, None), result("p", 0.6, 1.0)]
    (mean,) = compared(results)
    assert (mean.sessions, mean.cost, mean.far) == (2, 0.5, 0.9)
    assert mean.rules is None


def test_without_such_a_session_there_is_nothing_to_compare() -> None:
    assert compared([result("p", 1.0, None)]) == ()


def test_busts_are_in_100_calls() -> None:
    (mean,) = compared([result("p", 0.5, 1.0, warm_busts=3, calls=60)])
    assert mean.busts == pytest.approx(5)


def test_on_the_front_is_whom_nobody_beats() -> None:
    results = [
        result("cheap", 0.3, 0.7),
        result("worse", 0.4, 0.6),
        result("dear", 0.6, 0.9),
        result("dearer", 0.7, 0.9),
    ]
    assert [mean.policy for mean in compared(results) if mean.is_front] == ["cheap", "dear"]


def test_equals_are_both_on_the_front() -> None:
    assert all(mean.is_front for mean in compared([result("a", 0.4, 0.8), result("b", 0.4, 0.8)]))


shares = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=8))
def test_a_front_is_never_empty_and_rises(pairs: list[tuple[float, float]]) -> None:
    means = compared([result(f"p{n}", cost, far) for n, (cost, far) in enumerate(pairs)])
    front = sorted({(mean.cost, mean.far) for mean in means if mean.is_front})
    assert front
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(front))
