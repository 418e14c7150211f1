"""A time as people write it, in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Final

SECONDS_MAX: Final = 253_402_300_800.0
"""The end of the year 9999."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def minute_of(seconds: float) -> str:
    """`2026-11-21 03:05` for seconds since the epoch; `?` for what no clock should say."""
    if not 0 <= seconds < SECONDS_MAX:
        return "?"
    # Not `fromtimestamp`, which asks the C library: some of these end in the year 3000.
    return f"{_EPOCH + timedelta(seconds=int(seconds)):%Y-%m-%d %H:%M}"
