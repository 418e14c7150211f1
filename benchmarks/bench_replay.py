"""Measures the replay of a whole recorded session: every call rendered, priced and checked."""

import os
from pathlib import Path

from benchmarks.figures import Meter
from persistence.sessions import read_session
from timeline.replay import ReplayOptions, replay

ROOT = Path(__file__).parent.parent
RECORDED = Path(os.environ.get("FOLDLINE_SESSIONS", ROOT.parent / "shared/data/sessions"))
EXAMPLE = ROOT / "docs/examples/invoice-service.jsonl"
SECONDS_MAX = 10.0


def largest() -> Path:
    """The largest recorded session; the example if there are none."""
    found = [path for path in RECORDED.glob("*.jsonl") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_size, default=EXAMPLE)


def test_replaying_the_largest_session(meter: Meter) -> None:
    session = read_session(largest())
    options = ReplayOptions(window=60_000, counter="o200k")
    sample = meter.time(lambda: replay(session, options), rounds=1)
    size = f"{len(session.calls)} calls, {largest().stat().st_size / 1e6:.1f} MB"
    meter.note("replay in a window of 60k tokens", size, sample, target="<= 10 s")
    assert sample.p50 <= SECONDS_MAX
