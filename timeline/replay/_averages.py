"""Means of several replays by policy.

Only sessions that exceed the window and then use older names are counted, also for costs; the others do not tell policies
apart. A policy is on the front if no other one costs less and keeps as much of the far names, and none keeps more for the
same cost.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import attrs
from attrs import asdict

from timeline.replay._replay import ReplayResult


@attrs.frozen(kw_only=True)
class Means:
    """The averages of one policy over the sessions."""

    policy: str
    sessions: int
    """The number of sessions that count."""
    cost: float
    """The share of the cost of sending everything, in tokens of ordinary input."""
    far: float
    far_context: float
    far_wide: float
    quotes: float | None
    """None if no far line was repeated."""
    surroundings: float
    rules: float | None
    """None if no session has a text of the user."""
    edits: float | None = None
    """None if the agents made no edit."""
    standing: float | None = None
    """None if no session has standing instructions."""
    prompts: float | None = None
    busts: float
    """Calls in 100 that lost a cache that was still warm."""
    is_front: bool = False


def compared(results: Sequence[ReplayResult]) -> tuple[Means, ...]:
    """The means of each policy, in the order of the results; empty if no session counts."""
    pressed = [result for result in results if result.recall.far is not None]
    names = dict.fromkeys(result.policy for result in pressed)
    means = [means_of([r for r in pressed if r.policy == name]) for name in names]
    return tuple(attrs.evolve(mean, is_front=_is_front(mean, means)) for mean in means)


def means_of(results: Sequence[ReplayResult]) -> Means:
    """The means of these results of one policy, whether they count or not."""
    rows = [{**asdict(r.recall), **asdict(r.handover), "rules": r.rules} for r in results]
    names = attrs.fields_dict(Means).keys() & rows[0].keys()
    shares: dict[str, Any] = {name: _mean(each[name] for each in rows) for name in names}
    return Means(
        policy=results[0].policy,
        sessions=len(results),
        cost=fmean(result.units.ratio for result in results),
        busts=fmean(100 * result.warm_busts / max(result.calls, 1) for result in results),
        **shares,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


def _is_front(mean: Means, others: Iterable[Means]) -> bool:
    return not any(
        other.cost <= mean.cost
        and other.far >= mean.far
        and (other.cost, other.far) != (mean.cost, mean.far)
        for other in others
    )
