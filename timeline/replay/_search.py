"""The search for a policy: varies one field after the other along a declared list of values.

    keep_ratio    0.04  0.06  0.08 [0.1] 0.14  0.2  0.3      two steps each way first, then one;
    index_ratio   0.0   0.08  0.16  0.24  0.3 [0.38] 0.46    on, for as long as it gets better

Nothing is random: the same sessions and options give the same trials in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from blocks import PolicyError
from render import Policy
from timeline.replay._trial import Trial

SPACE: Final[Mapping[str, Sequence[Any]]] = {
    "index_ratio": (0.0, 0.08, 0.15, 0.22, 0.3, 0.38, 0.45, 0.55, 0.65),
    "keep_ratio": (0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3),
    "clip_ratio": (0.025, 0.035, 0.04, 0.05, 0.07, 0.1, 0.16),
    "trigger_ratio": (0.7, 0.8, 0.85, 0.9, 0.97),
    "index_layer": (0.0, 0.2, 0.3, 0.4),
    "index_rebuilt": (0.6, 0.7, 0.75, 0.85),
    "target_ratio": (0.5, 0.6, 0.7, 0.8, 0.88),
    "enough_ratio": (0.3, 0.4, 0.5, 0.65, 0.75),
    "cold_ratio": (0.3, 0.4, 0.5, 0.65, 0.8),
    "user_ratio": (0.06, 0.09, 0.12, 0.18),
}
"""The fields to vary and their values in ascending order; the fields with most effect come first."""
STEPS: Final = (2, 1)

Evaluate: TypeAlias = Callable[[Sequence[tuple[Policy, Mapping[str, Any]]]], Sequence[Trial]]
"""Tries policies, each given with its changed fields."""
Rank: TypeAlias = Callable[[Trial], tuple[float, ...]]


@attrs.define(kw_only=True)
class Search:
    """A search from one policy to better ones."""

    base: Policy
    space: Mapping[str, Sequence[Any]]
    evaluate: Evaluate
    rank: Rank
    """The sort key of a trial; the smallest is the best."""
    trials_max: int
    trials: list[Trial]
    """The trials so far, in order; the first is that of `base`."""
    best: Trial
    _tried: set[tuple[Any, ...]] = attrs.field(init=False, factory=set[tuple[Any, ...]])

    def run(self) -> None:
        """Search until no step improves the policy, or the trials are used up."""
        self._tried.add(self._point(self.base))
        for step in STEPS:
            while self._around(step):
                pass

    def _around(self, step: int) -> bool:
        """Vary every field once; returns whether the policy improved."""
        before = self.best
        for field in self.space:
            while self._move(field, (-step, step)):
                pass
        return self.best is not before

    def _move(self, field: str, steps: Sequence[int]) -> bool:
        """Try the values that many steps away; returns whether one of them is better."""
        values = self._values(field)
        at = values.index(getattr(self.best.policy, field))
        places = [at + step for step in steps if 0 <= at + step < len(values)]
        found = self._try([{field: values[place]} for place in places])
        better = min(found, key=self.rank, default=self.best)
        if self.rank(better) < self.rank(self.best):
            self.best = better
            return True
        return False

    def _values(self, field: str) -> list[Any]:
        """The values of a field, including that of the first policy."""
        return sorted({*self.space[field], getattr(self.base, field)})

    def _try(self, moves: Sequence[Mapping[str, Any]]) -> Sequence[Trial]:
        """Try the policies of these moves that were not tried before."""
        fresh = [made for move in moves if (made := self._made(move))]
        found = self.evaluate(fresh[: self.trials_max - len(self.trials)])
        self.trials += found
        return found

    def _made(self, move: Mapping[str, Any]) -> tuple[Policy, Mapping[str, Any]] | None:
        """The policy after a move and its changes; None if it is invalid or was tried before."""
        try:
            policy = attrs.evolve(self.best.policy, **move)
        except PolicyError:
            return None
        point = self._point(policy)
        if point in self._tried:
            return None
        self._tried.add(point)
        before = self._point(self.base)
        fields = zip(self.space, point, before, strict=True)
        return policy, {field: new for field, new, old in fields if new != old}

    def _point(self, policy: Policy) -> tuple[Any, ...]:
        return tuple(getattr(policy, field) for field in self.space)
