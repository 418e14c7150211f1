"""Calibration: from what requests were estimated at, and what the provider said they had.

    real = prefix + ratio * estimated

Two requests in a row differ by what was appended, and that is what the ratio is learnt from: the
prefix (a system prompt that is not ours, the provider's own additions) cancels out.  The prefix is
then whatever makes the newest sample exact, so that the next request, which is the last one and a
little more, is nearly exact, too.
"""

from typing import Final

from blocks import Calibration, TokensCounted, UsageRecorded

FADING: Final = 0.98
"""What a sample still weighs when the next one comes."""
PRIOR_TOKENS: Final = 2000
"""The ratio begins at 1 and is moved only by growth that outweighs this."""
GROWTH_MAX: Final = 3.0
"""Largest plausible number of real tokens per estimated token; more means that the hidden prefix has changed."""


def calibrated(old: Calibration, usage: UsageRecorded | TokensCounted) -> Calibration:
    """The calibration once one more request was measured; the same when it tells nothing."""
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
