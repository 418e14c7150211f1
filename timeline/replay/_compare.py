"""Compares policies: what each costs and keeps on average, and which of them are on the front.

Only sessions that exceed the window and then use older names are counted, also for costs; the others do not
tell policies apart.  A policy is on the front if no other one costs less and keeps as much of the far names,
and none keeps more for the same cost.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Final

import attrs

from timeline.replay._result import ReplayResult

MEASURES: Final = ("far", "far_context", "far_wide", "quotes", "surroundings", "rules")
"""The fields of `Means` that measure what is kept: shares from 0 to 1."""


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
    busts: float
    """Calls in 100 that lost a cache that was still warm."""
    is_front: bool = False

    @property
    def kept(self) -> float:
        """The mean of all measures of what is kept."""
        return fmean(v for name in MEASURES if (v := getattr(self, name)) is not None)


def compared(results: Sequence[ReplayResult]) -> tuple[Means, ...]:
    """The means of each policy, in the order of the results; empty if no session counts."""
    pressed = [result for result in results if result.recall.far is not None]
    names = dict.fromkeys(result.policy for result in pressed)
    means = [_means(name, [r for r in pressed if r.policy == name]) for name in names]
    return tuple(attrs.evolve(mean, is_front=_is_front(mean, means)) for mean in means)


def _means(policy: str, results: Sequence[ReplayResult]) -> Means:
    return Means(
        policy=policy,
        sessions=len(results),
        cost=fmean(result.units.ratio for result in results),
        far=_mean(results, lambda result: result.recall.far) or 0.0,
        far_context=_mean(results, lambda result: result.recall.far_context) or 0.0,
        far_wide=_mean(results, lambda result: result.recall.far_wide) or 0.0,
        quotes=_mean(results, lambda result: result.recall.quotes),
        surroundings=_mean(results, lambda result: result.recall.surroundings) or 0.0,
        rules=_mean(results, lambda result: result.rules),
        busts=fmean(100 * result.warm_busts / result.calls for result in results),
    )


def _mean(
    results: Iterable[ReplayResult], value: Callable[[ReplayResult], float | None]
) -> float | None:
    known = [number for result in results if (number := value(result)) is not None]
    return fmean(known) if known else None


def _is_front(mean: Means, others: Iterable[Means]) -> bool:
    return not any(
        other.cost <= mean.cost
        and other.far >= mean.far
        and (other.cost, other.far) != (mean.cost, mean.far)
        for other in others
    )
