"""Formatting of times in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Final

SECONDS_MAX: Final = 253_402_300_800.0
"""The end of the year 9999."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def minute_of(seconds: float) -> str:
    """`2026-11-21 03:05` for seconds since the epoch; `?` for a time before 1970 or after 9999."""
    if not 0 <= seconds < SECONDS_MAX:
        return "?"
    # Not `fromtimestamp`: it uses the C library, which on some platforms ends in the year 3000.
    return f"{_EPOCH + timedelta(seconds=int(seconds)):%Y-%m-%d %H:%M}"
