"""Calibration of token estimates with the counts that the provider reports.

    real = prefix + ratio * estimated

Two consecutive requests differ by what was appended, and the ratio is learnt from this difference: the
prefix (content that foldline does not count, such as the provider's own additions) cancels out. The prefix
is then set so that the newest sample is exact. The next request is the last one plus a little more, so its
estimate is nearly exact.
"""

from typing import Final

from blocks import Calibration, TokensCounted, UsageRecorded

FADING: Final = 0.98
"""Factor on the weight of older samples when a new one arrives."""
PRIOR_TOKENS: Final = 2000
"""Tokens of growth that weigh as much as the initial ratio of 1."""
GROWTH_MAX: Final = 3.0
"""Largest plausible number of real tokens per estimated token; more means that the hidden prefix has changed."""


def calibrated(old: Calibration, usage: UsageRecorded | TokensCounted) -> Calibration:
    """The calibration after one more request was measured; unchanged if the sample is not usable."""
    if usage.estimated <= 0 or usage.input <= 0:
        return old
    expected = old.prefix + old.ratio * usage.estimated
    estimated, real = old.estimated_growth, old.real_growth
    grown = usage.estimated - old.estimated_last
    if old.samples and grown > 0:
        explained = min(max(usage.input - old.real_last, 0), GROWTH_MAX * grown)
        estimated, real = FADING * estimated + grown, FADING * real + explained
    ratio = (real + PRIOR_TOKENS) / (estimated + PRIOR_TOKENS)
    return Calibration(
        ratio=ratio,
        prefix=usage.input - ratio * usage.estimated,
        samples=old.samples + 1,
        error_last=(expected - usage.input) / usage.input,
        estimated_last=usage.estimated,
        real_last=usage.input,
        estimated_growth=estimated,
        real_growth=real,
    )
