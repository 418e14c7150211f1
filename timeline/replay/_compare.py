"""Policies side by side: what each costs and keeps on average, and which of them make the front.

Only sessions that exceed the window and then use older names tell policies apart; the others are left
out, of costs too.  On the front is a policy that no other one beats: none costs less and keeps as much of the
far names, and none keeps more for as little.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Final

import attrs

from timeline.replay._result import ReplayResult

MEASURES: Final = ("far", "far_context", "far_wide", "quotes", "surroundings", "rules")
"""The measures of what is kept, fields of `Means`: shares from 0 to 1."""


@attrs.frozen(kw_only=True)
class Means:
    """One policy, averaged over the sessions."""

    policy: str
    sessions: int
    """The number of sessions that count."""
    cost: float
    """Share of the cost of sending everything, in tokens of ordinary input."""
    far: float
    far_context: float
    far_wide: float
    quotes: float | None
    """None: no older line was repeated."""
    surroundings: float
    rules: float | None
    """None: there are no user texts."""
    busts: float
    """Warm busts per 100 calls."""
    is_front: bool = False

    @property
    def kept(self) -> float:
        """The mean of all measures of what is kept."""
        return fmean(v for name in MEASURES if (v := getattr(self, name)) is not None)


def compared(results: Sequence[ReplayResult]) -> tuple[Means, ...]:
    """The means of each policy, in the given order; empty: no session counts."""
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
