"""Tuning: the cheapest policy that keeps the bounds, found in few trials, checked on what was left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import ArgumentError, MisuseError
from render import Policy
from tests._table import for_each
from tests.timeline.replay.invented import invented
from tests.timeline.replay.test_compare import result
from timeline.replay import ReplayOptions, Trial, Tuning, replay, tune
from timeline.replay._tune import SPACE, Search, checked_bounds, choices_without, front

FAR = {"far": 0.9}
SMALL = ReplayOptions(window=3_000, counter="estimate")


def trial(*figures: tuple[float, float], **fields: Any) -> Trial:
    """One with this cost and this recall in each session."""
    results = tuple(
        result("p", cost, far, session=f"s{n}", **fields) for n, (cost, far) in enumerate(figures)
    )
    return Trial(policy=Policy(), results=results, changes={})


# Which trial is better.


def test_first_the_window_then_the_bounds_then_the_cost() -> None:
    worst_first = [
        trial((0.1, 1.0), over_window_calls=1),
        trial((0.2, 0.7)),
        trial((0.9, 0.8)),
        trial((0.5, 0.9)),
        trial((0.4, 0.95)),
    ]
    ranks = [each.rank(FAR) for each in worst_first]
    assert ranks == sorted(ranks, reverse=True)


def test_more_than_the_bounds_is_worth_nothing() -> None:
    assert trial((0.4, 0.9)).rank(FAR) == trial((0.4, 1.0)).rank(FAR)


def test_what_is_missed_is_added_up_over_all_bounds() -> None:
    poor = trial((0.4, 0.8))
    bounds = {"far": 0.9, "far_wide": 0.85, "far_context": 0.5, "quotes": 0.9}
    assert dict(poor.missed(bounds)) == pytest.approx({"far": 0.1, "far_wide": 0.05})
    assert poor.shortfall(bounds) == pytest.approx(0.15)


def test_the_front_rises_with_the_cost() -> None:
    trials = [trial((0.5, 0.9)), trial((0.4, 0.8)), trial((0.6, 0.85)), trial((0.3, 0.8))]
    assert front(trials) == [trials[3], trials[0]]


# What is left out.


def test_a_choice_is_judged_on_sessions_that_had_no_part_in_it() -> None:
    cheap, dear = trial((0.2, 1.0), (0.2, 0.5)), trial((0.6, 1.0), (0.6, 1.0))
    without_first, without_second = choices_without([cheap, dear], FAR)
    assert (without_first.name, without_first.chosen) == ("s0", dear)
    assert (without_second.name, without_second.chosen) == ("s1", cheap)
    assert without_second.there.means.far == 0.5


def test_sessions_of_one_agent_are_left_out_together() -> None:
    results = [result("p", 0.5, 1.0, format=name) for name in ("codex", "pi", "codex")]
    each = Trial(policy=Policy(), results=tuple(results), changes={})
    assert [(row.name, len(row.there.results)) for row in choices_without([each], FAR)] == [
        ("codex", 2),
        ("pi", 1),
    ]


def test_one_session_leaves_nothing_to_check_on() -> None:
    assert choices_without([trial((0.5, 1.0))], FAR) == ()


# The search.


def searched(wanted: Mapping[str, int], trials: int, steps: Mapping[str, int]) -> Search:
    """A search where a policy is the dearer, the further each field is from what is wanted."""
    space = {field: SPACE[field] for field in wanted}

    def evaluate(policies: Sequence[tuple[Policy, Mapping[str, Any]]]) -> list[Trial]:
        return [_tried(policy, changed) for policy, changed in policies]

    def _tried(policy: Policy, changed: Mapping[str, Any]) -> Trial:
        away = [abs(SPACE[f].index(getattr(policy, f)) - at) for f, at in wanted.items()]
        return Trial(
            policy=policy, results=(result("p", 0.1 + 0.01 * sum(away), 1.0),), changes=changed
        )

    base = attrs.evolve(Policy(), **{field: SPACE[field][at] for field, at in steps.items()})
    first = _tried(base, {})
    search = Search(
        base=base,
        space=space,
        evaluate=evaluate,
        rank=lambda trial: trial.rank(FAR),
        trials_max=trials,
        trials=[first],
        best=first,
    )
    search.run()
    return search


FIELDS = ("page_tokens", "keep_ratio", "clip_ratio")
places = st.fixed_dictionaries({field: st.integers(0, 5) for field in FIELDS})


@given(places, places)
def test_each_field_finds_its_best_value(wanted: dict[str, int], start: dict[str, int]) -> None:
    best = searched(wanted, 200, start).best
    assert {field: getattr(best.policy, field) for field in FIELDS} == {
        field: SPACE[field][at] for field, at in wanted.items()
    }
    assert {**start, **{f: SPACE[f].index(v) for f, v in best.changes.items()}} == wanted


@given(places, places, st.integers(1, 12))
def test_no_policy_is_tried_twice_and_none_too_many(
    wanted: dict[str, int], start: dict[str, int], most: int
) -> None:
    trials = searched(wanted, most, start).trials
    assert len(trials) <= most
    assert len({each.policy for each in trials}) == len(trials)


def test_a_policy_that_contradicts_itself_is_not_tried() -> None:
    start = {"trigger_ratio": 1, "target_ratio": 3}  # both 0.8
    with pytest.raises(ArgumentError):
        searched(start, 9, start)
    search = searched(
        {"trigger_ratio": 0, "target_ratio": 4}, 50, {"trigger_ratio": 2, "target_ratio": 3}
    )
    assert all(t.policy.target_ratio < t.policy.trigger_ratio for t in search.trials)


def test_every_value_that_is_tried_makes_a_policy() -> None:
    for field, values in SPACE.items():
        assert list(values) == sorted(values)
        for value in values:
            lower = {"target_ratio": 0.4} if field == "trigger_ratio" else {}
            assert getattr(attrs.evolve(Policy(), **{**lower, field: value}), field) == value


# The whole.


def test_what_is_found_is_what_a_replay_of_it_says() -> None:
    session = invented(rounds=8)
    tuning = Tuning(at_least={"far": 0.2}, trials=5)
    tuned = tune([session, invented(turns=1)], SMALL, tuning)
    assert len(tuned.trials) == 5
    again = replay(session, attrs.evolve(SMALL, policy=tuned.best.policy))
    (found,) = tuned.best.results
    assert (found.units, found.recall) == (again.units, again.recall)
    assert tuned.best.means.cost <= tuned.trials[0].means.cost
    assert tuned.is_kept


def test_several_processes_find_the_same() -> None:
    sessions = [invented(rounds=8), invented(rounds=7)]
    one, two = (tune(sessions, SMALL, Tuning(trials=3, processes=n)) for n in (1, 2))
    assert [t.changes for t in one.trials] == [t.changes for t in two.trials]
    assert [t.means for t in one.trials] == [t.means for t in two.trials]


def test_progress_counts_replays_up_to_what_there_may_be() -> None:
    told: list[tuple[int, int]] = []
    sessions = [invented(rounds=8), invented(turns=1)]
    tuning = Tuning(trials=3)
    tune(sessions, SMALL, tuning, progress=lambda done, of: told.append((done, of)))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][0] <= told[-1][1] == 4


def test_without_a_session_that_is_too_long_there_is_nothing_to_tune_on() -> None:
    with pytest.raises(MisuseError, match="nothing to tune on: no session exceeds the window"):
        tune([invented()], ReplayOptions(window=100_000, counter="estimate"))


def test_a_bound_that_no_session_can_check_is_refused() -> None:
    with pytest.raises(MisuseError, match="no session has the measure 'quotes'"):
        tune([invented(rounds=8)], SMALL, Tuning(at_least={"quotes": 0.5}))


@for_each(
    ("at_least", "message"),
    [
        ({}, "give a bound for at least one of far, "),
        ({"surroundings": 0.5}, "'surroundings' alone is not enough"),
        ({"quote": 0.5}, "no measure 'quote'; did you mean 'quotes'?"),
        ({"far": 1.5}, "'far' must be a share from 0 to 1"),
        ({"far": float("nan")}, "'far' must be a share from 0 to 1"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(at_least: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message.replace("?", r"\?")):
        checked_bounds(at_least)


def test_as_many_trials_as_one_or_more() -> None:
    with pytest.raises(ArgumentError, match="'trials' must be 1 or more"):
        Tuning(trials=0)
