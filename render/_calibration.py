"""Calibration: from what a request was estimated at, and what the provider said it had."""

from typing import Final

from blocks import Calibration, UsageRecorded

WEIGHT: Final = 0.3
"""How much the newest sample moves the ratio."""


def calibrated(old: Calibration, usage: UsageRecorded) -> Calibration:
    """The calibration once one more request was measured; the same when it tells nothing."""
    if usage.estimated <= 0 or usage.input <= 0:
        return old
    expected = old.prefix + old.ratio * usage.estimated
    real = usage.input / usage.estimated
    weight = WEIGHT if old.samples else 1.0
    return Calibration(
        ratio=old.ratio + weight * (real - old.ratio),
        prefix=old.prefix,
        samples=old.samples + 1,
        error_last=(expected - usage.input) / usage.input,
    )
