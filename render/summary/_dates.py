"""A time as people write it, in UTC, without a clock or a calendar module."""

from typing import Final

SECONDS_MAX: Final = 253_402_300_800.0
"""The end of the year 9999."""
_DAY: Final = 86_400
_ERA: Final = 146_097
"""Days of 400 years, after which the calendar repeats."""


def minute_of(seconds: float) -> str:
    """`2026-11-21 03:05` for seconds since the epoch; `?` for what no clock should say."""
    if not 0 <= seconds < SECONDS_MAX:
        return "?"
    days, rest = divmod(int(seconds), _DAY)
    year, month, day = _date(days)
    return f"{year:04}-{month:02}-{day:02} {rest // 3600:02}:{rest // 60 % 60:02}"


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day, given days since 1970-01-01.

    Years are counted from March, so that the leap day comes last (Howard Hinnant, "chrono-compatible
    low-level date algorithms").
    """
    era, day = divmod(days + 719_468, _ERA)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9  # noqa: PLR2004 -- March is 0
    return year + 400 * era + (month <= 2), month, day + 1  # noqa: PLR2004 -- January, February
