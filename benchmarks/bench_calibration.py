"""Measures the error of the calibrated estimate of the next call, on recorded sessions with usage.

    pytest benchmarks/bench_calibration.py -p benchmark -s

Only calls before the recording's first compaction are measured: its result is not in the log.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from blocks import EventId, UsageRecorded
from persistence.sessions import Responded, Session, read_session
from render import Policy
from timeline import Timeline

RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[2] / "shared/data/sessions")
)
KINDS = ("cc", "codex", "pi", "mini")
FILES = [path for kind in KINDS for path in sorted(RECORDED.glob(f"{kind}-*.json*"))]
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


def errors_of(session: Session) -> Iterator[float]:
    """The relative error of each estimate from the second call on."""
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
                return
            real = item.usage.input
            if account.samples:
                yield abs(account.total - real) / real
            timeline.learn(measured(timeline, account.estimated, real))
        timeline.append(*item.blocks)


def measured(timeline: Timeline, estimated: int, real: int) -> UsageRecorded:
    model = timeline.render(system="You help.").model
    return UsageRecorded(id=EventId(""), at=0.0, model=model, uncached=real, estimated=estimated)


def report(name: str, errors: list[float]) -> str:
    worst = sorted(errors)[int(0.95 * len(errors))]
    return f"{name:16} {len(errors):6} calls  median {median(errors):7.2%}  p95 {worst:7.2%}\n"


@pytest.mark.skipif(not FILES, reason=f"no recorded sessions in {RECORDED}")
def test_the_next_call_is_known_within_a_few_percent(capsys: pytest.CaptureFixture[str]) -> None:
    everything: list[float] = []
    with capsys.disabled():
        sys.stdout.write("\n")
        for file in FILES:
            errors = list(errors_of(read_session(file)))
            everything += errors
            if errors:
                sys.stdout.write(report(file.stem, errors))
        sys.stdout.write(report("all", everything))
    assert median(everything) < MEDIAN_MAX
    assert sorted(everything)[int(0.95 * len(everything))] < P95_MAX
