"""Times in foreign JSON: an invalid time gives None, never an error."""

import math
from datetime import UTC, datetime
from typing import Any

from blocks.formats import string

_MILLISECONDS_MIN = 1e11
"""Numbers greater than this are milliseconds: as seconds they would be in the year 5138."""


def seconds(value: Any) -> float | None:
    """A time in seconds since the epoch, from ISO text (UTC if it has no zone) or a number; None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value) or value <= 0:
            return None
        return value / 1000 if value > _MILLISECONDS_MIN else float(value)
    try:
        at = datetime.fromisoformat(string(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
