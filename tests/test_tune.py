"""`benchmarks.tune`: the cheapest policy that keeps the bounds, found in few trials, checked on what was left out."""

from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.trials import Candidate, Trial
from benchmarks.tune import SPACE, Search, choices_without
from render import Policy
from tests.timeline.replay.test_averages import result

FAR = {"far": 0.9}
FIELDS = ("page_tokens", "keep_ratio", "clip_ratio")
places = st.fixed_dictionaries({field: st.integers(0, 5) for field in FIELDS})


def trial(*figures: tuple[float, float], **fields: Any) -> Trial:
    """One with this cost and this recall in each session."""
    results = (
        result("p", cost, far, session=f"s{n}", **fields) for n, (cost, far) in enumerate(figures)
    )
    return Trial(policy=Policy(), results=tuple(results), changes={})


def test_first_the_window_then_the_bounds_then_the_cost_and_more_than_the_bounds_is_worth_nothing() -> (
    None
):
    worst_first = [
        trial((0.1, 1.0), over_window_calls=1),
        trial((0.2, 0.7)),
        trial((0.9, 0.8)),
        trial((0.5, 0.9)),
        trial((0.4, 0.95)),
    ]
    ranks = [each.rank(FAR) for each in worst_first]
    assert ranks == sorted(ranks, reverse=True)
    assert trial((0.4, 0.9)).rank(FAR) == trial((0.4, 1.0)).rank(FAR)


def test_a_choice_is_judged_on_sessions_that_had_no_part_in_it() -> None:
    cheap, dear = trial((0.2, 1.0), (0.2, 0.5)), trial((0.6, 1.0), (0.6, 1.0))
    (_, chosen, _), (_, other, there) = choices_without([cheap, dear], FAR)
    assert (chosen, other) == (dear, cheap)
    assert there.means.far == 0.5
    mixed = [result("p", 0.5, 1.0, format=name) for name in ("codex", "pi", "codex")]
    each = Trial(policy=Policy(), results=tuple(mixed), changes={})
    left = [(name, len(there.results)) for name, _, there in choices_without([each], FAR)]
    assert left == [("codex", 2), ("pi", 1)]
    assert [*choices_without([trial((0.5, 1.0))], FAR)] == []


@given(places, places, st.integers(1, 200))
def test_each_field_finds_its_best_value_and_no_policy_is_tried_twice(
    best: dict[str, int], start: dict[str, int], most: int
) -> None:
    """A policy is the dearer, the further each field is from the best place."""

    def evaluate(candidates: Sequence[Candidate]) -> list[Trial]:
        return [
            Trial(
                policy=policy,
                changes=changes,
                results=(result("p", 0.1 + 0.01 * away(policy), 1.0),),
            )
            for policy, changes in candidates
        ]

    def away(policy: Policy) -> int:
        return sum(abs(SPACE[f].index(getattr(policy, f)) - at) for f, at in best.items())

    search = Search(
        base=attrs.evolve(Policy(), **{field: SPACE[field][at] for field, at in start.items()}),
        evaluate=evaluate,
        at_least=FAR,
        trials_max=most,
        space={field: SPACE[field] for field in FIELDS},
    )
    search.run()
    assert len({each.policy for each in search.trials}) == len(search.trials) <= most
    places = {field: SPACE[field].index(getattr(search.best.policy, field)) for field in FIELDS}
    assert most < 100 or places == best
    assert places == {**start, **{f: SPACE[f].index(v) for f, v in search.best.changes.items()}}
