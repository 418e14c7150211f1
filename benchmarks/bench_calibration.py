"""Measures the calibrated estimate of the next call against what the provider reported, on recorded sessions with usage.

    pytest benchmarks/bench_calibration.py -p benchmark -s

Only calls before the recording's first compaction are measured: its result is not in the log.
"""

import os
import sys
from pathlib import Path
from statistics import median

import attrs
import pytest

from blocks import EventId, UsageRecorded
from persistence.sessions import Responded, Session, read_session
from render import Policy
from timeline import Timeline

RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[2] / "shared/data/sessions")
)
FILES = sorted(path for path in RECORDED.glob("*-*.json*") if path.suffix != ".gz")
CALLS_MIN = 10
"""Sessions with fewer measured calls are left out."""
AFTER = (0, 1, 2, 5)
"""The numbers of counted calls after which the estimate of the next one is shown."""
MEDIAN_MAX = 0.05
P95_MAX = 0.15
SHRUNK = 0.8
"""A prompt smaller than this share of the previous one counts as compacted."""
EVERYTHING = Policy(
    trigger_ratio=1.0,
    target_ratio=0.99,
    clip_ratio=1.0,
    prepare_ratio=1.0,
    turns_intact=10**6,
    turns_visible=10**6,
    rounds_intact=10**6,
    rounds_visible=10**6,
)
"""Prunes, clips and compacts nothing, like the recorded prompts."""


@attrs.frozen
class Call:
    """One call: our count without calibration, the calibrated one, and what was reported."""

    estimated: int
    total: int
    real: int

    @property
    def error(self) -> float:
        return abs(self.total - self.real) / self.real


def calls_of(session: Session) -> list[Call]:
    """The calls until the recording's first compaction."""
    calls = list[Call]()
    now = 0.0
    timeline = Timeline.open(
        session.name,
        model=session.model or "claude-sonnet-5-5",
        window=10**9,
        policy=EVERYTHING,
        clock=lambda: now,
    )
    real = 0
    for item in session.items:
        now = item.at
        if isinstance(item, Responded) and item.usage and item.usage.input > 0:
            account = timeline.render(system="You help.").account
            if item.usage.input < SHRUNK * real:
                break
            real = item.usage.input
            calls.append(Call(account.estimated, account.total, real))
            timeline.learn(measured(timeline, account.estimated, real))
        timeline.append(*item.blocks)
    return calls


def measured(timeline: Timeline, estimated: int, real: int) -> UsageRecorded:
    model = timeline.render(system="You help.").model
    return UsageRecorded(id=EventId(""), at=0.0, model=model, uncached=real, estimated=estimated)


def row(session: Session, calls: list[Call]) -> str:
    """A line of the table in `docs/counting.md`."""
    first, last = calls[0], calls[-1]
    grown = (last.real - first.real) / max(last.estimated - first.estimated, 1)
    shares = " | ".join(f"{calls[n].total / calls[n].real:.2f}" for n in AFTER)
    off = f"{median(call.error for call in calls[1:]):.2%}"
    model = session.model or "unknown"
    return f"| {session.name} | {model} | {len(calls)} | {grown:.2f} | {shares} | {off} |\n"


@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
def test_the_next_call_is_known_within_a_few_percent(capsys: pytest.CaptureFixture[str]) -> None:
    everything: list[float] = []
    with capsys.disabled():
        sys.stdout.write("\n")
        for file in FILES:
            session = read_session(file)
            if len(calls := calls_of(session)) >= CALLS_MIN:
                sys.stdout.write(
                    row(attrs.evolve(session, name=file.name.partition(".")[0]), calls)
                )
                everything += [call.error for call in calls[1:]]
        worst = sorted(everything)[int(0.95 * len(everything))]
        sys.stdout.write(
            f"{len(everything)} calls: median {median(everything):.2%}, p95 {worst:.2%}\n"
        )
    assert median(everything) < MEDIAN_MAX
    assert worst < P95_MAX
