"""Measures `import timeline`, against starting a bare interpreter."""

import os
import subprocess
import sys

from benchmarks.figures import Meter, spoken

SECONDS_MAX = 0.150
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""The environment with compiled files allowed, as in an installation."""


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)


def test_importing_is_fast(meter: Meter) -> None:
    run("import timeline")
    sample = meter.compare(run, run, lambda: ("import timeline", "pass"), rounds=15)
    cost = sample.best - min(sample.bare)
    meter.note(
        "import timeline", f"adds {spoken(cost)}", sample, against="python", target="adds <= 150 ms"
    )
    assert cost <= SECONDS_MAX
