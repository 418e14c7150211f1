"""Compares policies, and finds the cheapest one that keeps the given bounds.

Every policy is replayed over all sessions that exceed the window and then use older names; others have
no recall.  To reveal a policy that fits one agent only, the choice is repeated without each source of
sessions and measured on the sessions left out.
"""

import signal
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from multiprocessing import get_context
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from blocks import ArgumentError, MisuseError, PolicyError, did_you_mean, in_words
from persistence import MemoryStore
from persistence.sessions import Session
from render import Policy
from timeline.replay._handover import Handover
from timeline.replay._options import ReplayOptions
from timeline.replay._recall import Recall
from timeline.replay._replay import Progress, Replay, ReplayResult, result_of

HANDED: Final = ("edits", "standing", "prompts")
"""The measures of `Handover`."""
MEASURES: Final = (*("far", "far_context", "far_wide", "quotes", "surroundings", "rules"), *HANDED)
"""The fields of `Means` that measure what is kept: shares from 0 to 1."""
DIGITS: Final = 3
"""The decimals to which trials are compared."""
GRADED: Final = "surroundings"
SPACE: Final[Mapping[str, Sequence[Any]]] = {
    "page_tokens": (0, 5_000, 10_000, 14_000, 18_000, 24_000, 30_000),
    "working_ratio": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25),
    "keep_ratio": (0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3),
    "clip_ratio": (0.025, 0.04, 0.06, 0.08, 0.1, 0.16),
    "trigger_ratio": (0.7, 0.8, 0.85, 0.9, 0.97),
    "found_ratio": (0.15, 0.28, 0.4),
    "target_ratio": (0.5, 0.6, 0.7, 0.8, 0.88),
    "enough_ratio": (0.3, 0.4, 0.5, 0.65, 0.75),
    "cold_ratio": (0.3, 0.4, 0.5, 0.65, 0.8),
    "user_ratio": (0.06, 0.09, 0.12, 0.18),
}
"""The fields to vary and their values in ascending order; the fields with most effect come first."""
STEPS: Final = (2, 1)
TRIALS: Final = 40
AT_LEAST: Final[Mapping[str, float]] = {"far": 0.8}
_Job: TypeAlias = tuple[Session, ReplayOptions]
_Map: TypeAlias = Callable[[Callable[[_Job], ReplayResult], Sequence[_Job]], Iterator[ReplayResult]]
Candidate: TypeAlias = tuple[Policy, Mapping[str, Any]]
"""A policy, and the fields in which it differs from the first one."""
Evaluate: TypeAlias = Callable[[Sequence[Candidate]], Sequence["Trial"]]
Rank: TypeAlias = Callable[["Trial"], tuple[float, ...]]


def checked_bounds(at_least: Mapping[str, float]) -> Mapping[str, float]:
    """Check the bounds and return them.

    Raises:
        ArgumentError: there are no bounds, a measure does not exist, or a value is not a share.
    """
    if not set(at_least) - {GRADED}:
        raise ArgumentError(
            f"give a bound for at least one of {', '.join(m for m in MEASURES if m != GRADED)}; "
            f"{GRADED!r} alone is not enough: half of each text is of no use to an agent"
        )
    for name, least in at_least.items():
        if name not in MEASURES:
            near = did_you_mean(name, MEASURES) or f"; known: {', '.join(MEASURES)}"
            raise ArgumentError(f"no measure {name!r}{near}")
        if isinstance(least, bool) or not 0 <= least <= 1:
            raise ArgumentError(f"{name!r} must be a share from 0 to 1 (got {in_words(least)})")
    return MappingProxyType(dict(at_least))


def _positive(_: object, attribute: Any, value: int) -> None:
    if value < 1:
        raise ArgumentError(f"{attribute.name!r} must be 1 or more (got {value})")


@attrs.frozen(kw_only=True)
class Tuning:
    """The bounds of a search and its limits.

    Raises:
        ArgumentError: a measure does not exist, or a number is out of range.
    """

    at_least: Mapping[str, float] = attrs.field(default=AT_LEAST, converter=checked_bounds)
    """Bounds by measure: `far`, `far_context`, `far_wide`, `quotes`, `surroundings`, `rules`,
    `edits`, `standing`, `prompts`."""
    trials: int = attrs.field(default=TRIALS, validator=_positive)
    """The most policies to try; each is a replay of every session."""
    space: Mapping[str, Sequence[Any]] = attrs.field(default=SPACE, repr=False)
    """The fields of a policy to vary, and the values to try for each."""
    processes: int = attrs.field(default=1, validator=_positive)
    """The number of processes. Each one imports the caller's script, which needs `if __name__ == "__main__":`."""


@attrs.frozen(kw_only=True)
class Tuned:
    """The result of a search."""

    best: "Trial"
    """The cheapest trial that keeps the bounds; if none does, the one that misses them least."""
    trials: tuple["Trial", ...]
    """All trials in order; the first is that of the starting policy."""
    left_out: tuple["LeftOut", ...]
    at_least: Mapping[str, float]

    @property
    def is_kept(self) -> bool:
        """Whether the best trial keeps all bounds."""
        return not self.best.shortfall(self.at_least)

    @property
    def front(self) -> list["Trial"]:
        """The trials that no other trial beats in both cost and average recall, cheapest first."""
        return front(self.trials)


def tune(
    sessions: Sequence[Session],
    options: ReplayOptions | None = None,
    tuning: Tuning | None = None,
    *,
    progress: Progress | None = None,
) -> Tuned:
    """Find the cheapest policy for these sessions that keeps the bounds, starting from that of `options`.

    `progress` is called with the replays done and the most that there can be.

    Raises:
        MisuseError: no session exceeds the window and then uses older names; no session has a measure
            with a bound; the window cannot hold system prompt and tools.
    """
    options, tuning = options or ReplayOptions(), tuning or Tuning()
    base = options.policy_given()
    with worker_map(min(tuning.processes, 2 * len(sessions))) as mapped:
        bench = Bench(mapped=mapped, options=options, progress=progress)
        first = bench.first(sessions, (base, {}), tuning.trials)
        check_measured(first, tuning.at_least)
        search = Search(
            base=base,
            space=tuning.space,
            evaluate=bench.evaluate,
            rank=lambda trial: trial.rank(tuning.at_least),
            trials_max=tuning.trials,
            trials=[first],
            best=first,
        )
        search.run()
    return tuned_of(search.trials, tuning.at_least)


def tuned_of(trials: Sequence["Trial"], at_least: Mapping[str, float]) -> Tuned:
    """The best of these trials, with its check on sessions left out; of equal trials the first."""
    best = min(trials, key=lambda trial: trial.rank(at_least))
    checks = choices_without(trials, at_least)
    return Tuned(best=best, trials=tuple(trials), left_out=checks, at_least=at_least)


@attrs.define(kw_only=True)
class Bench:
    """Replays policies over the sessions that have a recall."""

    mapped: _Map
    options: ReplayOptions
    progress: Progress | None
    sessions: Sequence[Session] = ()
    done: int = 0
    total: int = 0

    def first(self, sessions: Sequence[Session], candidate: Candidate, trials: int) -> "Trial":
        """Try the starting policy on all sessions; later trials use only the sessions that have a recall."""
        base, changes = candidate
        self.total = trials * len(sessions)
        results = self._replayed([(session, base) for session in sessions])
        pressed = [(s, r) for s, r in zip(sessions, results, strict=True) if _counts(r)]
        if not pressed:
            raise MisuseError(
                "nothing to tune on: no session exceeds the window and then uses older names; "
                "take a smaller window or longer sessions"
            )
        self.sessions = [session for session, _ in pressed]
        self.total = len(sessions) + (trials - 1) * len(pressed)
        return Trial(policy=base, results=tuple(result for _, result in pressed), changes=changes)

    def evaluate(self, policies: Sequence[Candidate]) -> list["Trial"]:
        """Try these policies."""
        count = len(self.sessions)
        results = self._replayed([(s, policy) for policy, _ in policies for s in self.sessions])
        parts = [tuple(results[at : at + count]) for at in range(0, len(results), count)]
        return [
            Trial(policy=policy, results=part, changes=changed)
            for (policy, changed), part in zip(policies, parts, strict=True)
        ]

    def _replayed(self, jobs: Sequence[tuple[Session, Policy]]) -> list[ReplayResult]:
        results: list[ReplayResult] = []
        each = [(session, attrs.evolve(self.options, policy=policy)) for session, policy in jobs]
        for result in self.mapped(result_for, each):
            results.append(result)
            self.done += 1
            if self.progress:
                self.progress(self.done, self.total)
        return results


def result_for(job: _Job) -> ReplayResult:
    """Run one replay in memory; the result has no curve."""
    session, options = job
    running = Replay.begin(session, options, MemoryStore())
    running.run()
    return attrs.evolve(result_of(running, options.counter, 0), points=(), notices=())


def _counts(result: ReplayResult) -> bool:
    return result.recall.far is not None


@contextmanager
def worker_map(processes: int) -> Generator[_Map]:
    """A `map` over that many processes; 1 means the current process."""
    if processes == 1:
        yield map
        return
    # Not forked: a forked process that had threads may deadlock.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _ignore_interrupts)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker: the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# The search: varies one field after the other along a declared list of values.
#
#     keep_ratio    0.04  0.06  0.08 [0.1] 0.14  0.2  0.3      two steps each way first, then one;
#     page_tokens  6000  12000 [20000] 26000                   on, for as long as it gets better
#
# Nothing is random: the same sessions and options give the same trials in the same order.


@attrs.define(kw_only=True)
class Search:
    """A search from one policy to better ones."""

    base: Policy
    space: Mapping[str, Sequence[Any]]
    evaluate: Evaluate
    rank: Rank
    """The sort key of a trial; the smallest is the best."""
    trials_max: int
    trials: list["Trial"]
    """The trials so far, in order; the first is that of `base`."""
    best: "Trial"
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
        trials = self._try([{field: values[place]} for place in places])
        better = min(trials, key=self.rank, default=self.best)
        if self.rank(better) < self.rank(self.best):
            self.best = better
            return True
        return False

    def _values(self, field: str) -> list[Any]:
        """The values of a field, including that of the first policy."""
        return sorted({*self.space[field], getattr(self.base, field)})

    def _try(self, moves: Sequence[Mapping[str, Any]]) -> Sequence["Trial"]:
        """Try the policies of these moves that were not tried before."""
        fresh = [new for move in moves if (new := self._candidate(move))]
        trials = self.evaluate(fresh[: self.trials_max - len(self.trials)])
        self.trials += trials
        return trials

    def _candidate(self, move: Mapping[str, Any]) -> Candidate | None:
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


# Trials: cost and recall of one policy on some sessions, compared with the bounds.  They are ranked by the number of
# prompts over the window, then by how far they miss the bounds, then by cost; less is better.


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """One policy on sessions that all exceed the window and use older names."""

    policy: Policy
    results: tuple[ReplayResult, ...] = attrs.field(repr=False)
    """One result for each session, in the order given."""
    changes: Mapping[str, Any]
    """The fields that differ from the first policy of the search, with their values."""

    @cached_property
    def means(self) -> "Means":
        """The policy's averages over the sessions."""
        (means,) = compared(self.results)
        return means

    def on(self, sessions: Collection[int]) -> "Trial":
        """The same trial on some of the sessions, given by index."""
        chosen = (result for at, result in enumerate(self.results) if at in sessions)
        return attrs.evolve(self, results=tuple(chosen))

    def shortfall(self, at_least: Mapping[str, float]) -> float:
        """The sum by which it misses the bounds; 0 if it keeps them all."""
        return sum(short for _, short in self.missed(at_least))

    def missed(self, at_least: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """The measures below their bounds and by how much; a measure that no session has is left out."""
        for name, least in at_least.items():
            value = getattr(self.means, name)
            if value is not None and value < least:
                yield name, least - value

    def rank(self, at_least: Mapping[str, float]) -> tuple[int, float, float]:
        """The sort key of this trial; the smallest is the best."""
        over = sum(result.over_window_calls for result in self.results)
        short = self.shortfall(at_least)
        return over, round(short, DIGITS), round(self.means.cost, DIGITS)


def front(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that no other trial beats in both cost and average recall, cheapest first."""
    best: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: (trial.means.cost, -trial.means.kept)):
        if not best or trial.means.kept > best[-1].means.kept:
            best.append(trial)
    return best


@attrs.frozen(kw_only=True)
class LeftOut:
    """The policy chosen without some sessions, and its result on them."""

    name: str
    """The format left out; if all sessions have one format, the session left out."""
    chosen: Trial
    """The best trial on the other sessions."""
    there: Trial
    """The trial of the same policy on the sessions left out."""


def choices_without(trials: Sequence[Trial], at_least: Mapping[str, float]) -> tuple[LeftOut, ...]:
    """Leave out each format in turn, or each session; empty if there is only one session."""
    groups = _groups(trials[0].results)
    everything = set(range(len(trials[0].results)))
    choices: list[LeftOut] = []
    for name, group in groups.items():
        if others := everything - group:
            chosen = min(trials, key=lambda trial: trial.on(others).rank(at_least))
            choices.append(LeftOut(name=name, chosen=chosen, there=chosen.on(group)))
    return tuple(choices)


def _groups(results: Sequence[ReplayResult]) -> dict[str, set[int]]:
    """The indexes of the sessions, by format or by name."""
    formats = {result.format for result in results}
    groups: dict[str, set[int]] = {}
    for at, result in enumerate(results):
        if len(formats) > 1:
            groups.setdefault(result.format, set()).add(at)
        else:
            name = result.session
            groups[name if name not in groups else f"{name} ({at + 1})"] = {at}
    return groups


def check_measured(trial: Trial, at_least: Mapping[str, float]) -> None:
    """Check that every bound can be measured.

    Raises:
        MisuseError: none of the sessions has this measure.
    """
    for name in at_least:
        if getattr(trial.means, name) is None:
            raise MisuseError(
                f"no session has the measure {name!r}; leave its bound out, or give other sessions"
            )


# Means.  Only sessions that exceed the window and then use older names are counted, also for costs; the others do not
# tell policies apart.  A policy is on the front if no other one costs less and keeps as much of the far names, and none
# keeps more for the same cost.


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
    shares: dict[str, Any] = {
        name: _mean(getattr(_source(r, name), name) for r in results) for name in MEASURES
    }
    return Means(
        policy=policy,
        sessions=len(results),
        cost=fmean(result.units.ratio for result in results),
        busts=fmean(100 * result.warm_busts / result.calls for result in results),
        **shares,
    )


def _source(result: ReplayResult, measure: str) -> ReplayResult | Recall | Handover:
    """The part of a result that has this measure."""
    if measure in HANDED:
        return result.handover
    return result if measure == "rules" else result.recall


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
