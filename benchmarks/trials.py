"""Trials of policies: each is replayed over the recorded sessions that exceed the window and then use older names.

The other sessions have no recall and do not tell policies apart.
"""

import os
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
from rich.console import Console

from blocks import FoldlineError
from persistence.sessions import Session, read_session
from render import Policy
from timeline.cli._console import progress_bar
from timeline.replay import Means, ReplayOptions, ReplayResult, compared
from timeline.replay._replay import Replay, result_of

SOURCES: Final = ("cc", "codex", "pi", "mini")
SYSTEM: Final = (
    50
    * (
        "You are a careful software engineering agent. Work step by step, read before you write, keep changes "
        "small, run the checks, and tell the user plainly what was done and what was not. "
    )
)[:9000]
"""As long as that of a small agent: 1,800 tokens."""
FIGURES: Final = {
    "cost": "cost",
    "far": "far",
    "far_context": "farctx",
    "far_wide": "farwide",
    "quotes": "quotes",
    "surroundings": "around",
    "rules": "rules",
    "edits": "edits",
    "standing": "standing",
    "prompts": "whole",
}
"""The fields of `Means`, and the names of their columns."""
DIGITS: Final = 3
"""The decimals to which trials are compared."""
Candidate: TypeAlias = tuple[Policy, Mapping[str, Any]]
"""A policy, and the fields in which it differs from the first one."""


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """One policy on sessions that all exceed the window and use older names."""

    policy: Policy
    results: tuple[ReplayResult, ...] = attrs.field(repr=False)
    """One result for each session, in the order given."""
    changes: Mapping[str, Any]
    """The fields that differ from the first policy, with their values."""

    @cached_property
    def means(self) -> Means:
        """The policy's averages over the sessions."""
        (means,) = compared(self.results)
        return means

    def on(self, sessions: Collection[int]) -> "Trial":
        """The same trial on some of the sessions, given by index."""
        chosen = (result for at, result in enumerate(self.results) if at in sessions)
        return attrs.evolve(self, results=tuple(chosen))

    def missed(self, at_least: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """The measures below their bounds and by how much; a measure that no session has is left out."""
        for name, least in at_least.items():
            value = getattr(self.means, name)
            if value is not None and value < least:
                yield name, least - value

    def rank(self, at_least: Mapping[str, float]) -> tuple[int, float, float]:
        """The sort key: prompts over the window, then what is missed of the bounds, then the cost; less is better."""
        over = sum(result.over_window_calls for result in self.results)
        short = sum(missing for _, missing in self.missed(at_least))
        return over, round(short, DIGITS), round(self.means.cost, DIGITS)

    def figures(self) -> Iterator[str]:
        """The means, to three digits."""
        for field in FIGURES:
            value = getattr(self.means, field)
            yield "" if value is None else f"{value:.3f}"


@attrs.define
class Bench:
    """Replays policies in processes, over the sessions in which the first policy has a recall."""

    sessions: Sequence[Session]
    window: int
    jobs: int

    def trials(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """A trial of each candidate, in their order; the first call drops the sessions without a recall."""
        if not candidates:
            return []
        jobs = [
            (session, options(self.window, policy))
            for policy, _ in candidates
            for session in self.sessions
        ]
        with (
            ProcessPoolExecutor(self.jobs, get_context("spawn"), ignore_interrupts) as pool,
            progress_bar("replays", len(jobs)) as progress,
        ):
            results = list[ReplayResult]()
            for result in pool.map(replayed, jobs):
                results.append(result)
                progress(len(results), len(jobs))
        count = len(self.sessions)
        rows = [results[at * count : (at + 1) * count] for at in range(len(candidates))]
        pressed = [at for at in range(count) if rows[0][at].recall.far is not None]
        if not pressed:
            raise SystemExit("No session exceeds the window and then uses older names.")
        self.sessions = [self.sessions[at] for at in pressed]
        return [
            Trial(policy=policy, changes=changes, results=tuple(row[at] for at in pressed))
            for (policy, changes), row in zip(candidates, rows, strict=True)
        ]


def ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker: the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def replayed(job: tuple[Session, ReplayOptions]) -> ReplayResult:
    """Run one replay in memory; the result has no curve."""
    session, chosen = job
    running = Replay.begin(session, chosen)
    running.run()
    return attrs.evolve(result_of(running, 0), points=(), notices=())


def options(window: int, policy: Policy | str = "default") -> ReplayOptions:
    """The options for replaying the recorded sessions."""
    return ReplayOptions(
        window=window,
        counter="o200k",
        keep_thinking=False,
        policy=policy,
        provider="anthropic",
        system=SYSTEM,
    )


def sessions() -> list[Path]:
    """The files of the recorded sessions, beside the repository or in FOLDLINE_SESSIONS."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
    folder = Path(os.environ.get("FOLDLINE_SESSIONS", beside))
    return [path for path in in_folder(folder) if path.name.split("-")[0] in SOURCES]


def in_folder(folder: Path) -> list[Path]:
    """The files in a folder that may be sessions."""
    return sorted(path for path in folder.glob("*.json*") if path.name != "MANIFEST.json")


def read(paths: Sequence[Path], console: Console) -> Iterator[Session]:
    """The sessions in these files; says which files have none."""
    for path in paths:
        try:
            yield read_session(path)
        except FoldlineError as error:
            console.print(f"{path.name}: {error}", markup=False)
