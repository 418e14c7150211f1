"""The entry point of the tuner: finds the cheapest policy that keeps the given bounds.

Every policy is replayed over all sessions that exceed the window and then use older names; others have
no recall.  To reveal a policy that fits one agent only, the choice is repeated without each source of
sessions and measured on the sessions left out.
"""

import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final, TypeAlias

import attrs

from blocks import ArgumentError, MisuseError
from persistence import MemoryStore
from persistence.sessions import Session
from render import Policy
from timeline.replay._options import ReplayOptions
from timeline.replay._replay import Progress, Replay
from timeline.replay._report import result_of
from timeline.replay._result import ReplayResult
from timeline.replay._search import SPACE, Search
from timeline.replay._trial import (
    LeftOut,
    Trial,
    check_measured,
    checked_bounds,
    front,
    left_out,
)

TRIALS: Final = 40
AT_LEAST: Final[Mapping[str, float]] = {"far": 0.95}

_Job: TypeAlias = tuple[Session, ReplayOptions]
_Map: TypeAlias = Callable[[Callable[[_Job], ReplayResult], Sequence[_Job]], Iterator[ReplayResult]]


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
    """Bounds by measure: `far`, `far_context`, `far_wide`, `quotes`, `surroundings`, `rules`."""
    trials: int = attrs.field(default=TRIALS, validator=_positive)
    """The most policies to try; each is a replay of every session."""
    space: Mapping[str, Sequence[Any]] = attrs.field(default=SPACE, repr=False)
    """The fields of a policy to vary, and the values to try for each."""
    processes: int = attrs.field(default=1, validator=_positive)
    """The number of processes. Each one imports the caller's script, which needs `if __name__ == "__main__":`."""


@attrs.frozen(kw_only=True)
class Tuned:
    """The result of a search."""

    best: Trial
    """The cheapest trial that keeps the bounds; if none does, the one that misses them least."""
    trials: tuple[Trial, ...]
    """All trials in order; the first is that of the starting policy."""
    left_out: tuple[LeftOut, ...]
    at_least: Mapping[str, float]

    @property
    def is_kept(self) -> bool:
        """Whether the best trial keeps all bounds."""
        return not self.best.shortfall(self.at_least)

    @property
    def front(self) -> list[Trial]:
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
    with _mapped(min(tuning.processes, 2 * len(sessions))) as mapped:
        bench = _Bench(mapped=mapped, options=options, progress=progress)
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


def try_policies(
    sessions: Sequence[Session],
    policies: Sequence[tuple[Policy, Mapping[str, Any]]],
    options: ReplayOptions | None = None,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[Trial]:
    """Try exactly these policies, each given with its changed fields, on the sessions that have a recall.

    Raises:
        MisuseError: as for `tune`.
    """
    with _mapped(processes) as mapped:
        bench = _Bench(mapped=mapped, options=options or ReplayOptions(), progress=progress)
        first = bench.first(sessions, policies[0], len(policies))
        return [first, *bench.evaluate(policies[1:])]


def tuned_of(trials: Sequence[Trial], at_least: Mapping[str, float]) -> Tuned:
    """The best of these trials, with its check on sessions left out; of equal trials the first."""
    best = min(trials, key=lambda trial: trial.rank(at_least))
    checks = left_out(trials, at_least)
    return Tuned(best=best, trials=tuple(trials), left_out=checks, at_least=at_least)


@attrs.define(kw_only=True)
class _Bench:
    """Replays policies over the sessions that have a recall."""

    mapped: _Map
    options: ReplayOptions
    progress: Progress | None
    sessions: Sequence[Session] = ()
    done: int = 0
    total: int = 0

    def first(
        self, sessions: Sequence[Session], given: tuple[Policy, Mapping[str, Any]], trials: int
    ) -> Trial:
        """Try the starting policy on all sessions; later trials use only the sessions that have a recall."""
        base, changes = given
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

    def evaluate(self, policies: Sequence[tuple[Policy, Mapping[str, Any]]]) -> list[Trial]:
        """Try these policies, each given with its changed fields."""
        count = len(self.sessions)
        results = self._replayed([(s, policy) for policy, _ in policies for s in self.sessions])
        parts = [tuple(results[at : at + count]) for at in range(0, len(results), count)]
        return [
            Trial(policy=policy, results=part, changes=changed)
            for (policy, changed), part in zip(policies, parts, strict=True)
        ]

    def _replayed(self, jobs: Sequence[tuple[Session, Policy]]) -> list[ReplayResult]:
        results: list[ReplayResult] = []
        given = [(session, attrs.evolve(self.options, policy=policy)) for session, policy in jobs]
        for result in self.mapped(replayed, given):
            results.append(result)
            self.done += 1
            if self.progress:
                self.progress(self.done, self.total)
        return results


def replayed(job: _Job) -> ReplayResult:
    """Run one replay in memory; the result has no curve."""
    session, options = job
    running = Replay.begin(session, options, MemoryStore())
    running.run()
    return attrs.evolve(result_of(running, options.counter, 0), points=(), notices=())


def _counts(result: ReplayResult) -> bool:
    return result.recall.far is not None


@contextmanager
def _mapped(processes: int) -> Generator[_Map]:
    """A `map` over that many processes; 1 means the current process."""
    if processes == 1:
        yield map
        return
    # Not forked: a forked process that had threads may deadlock.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _left_alone)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _left_alone() -> None:
    """Ignore Ctrl-C in a worker: the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
