"""Times in the texts that a model reads."""

from render.compaction._ladder_steps import minute_of
from tests._table import for_each


def test_it_is_the_minute_in_utc() -> None:
    assert minute_of(1763694345.9) == "2025-11-21 03:05"


@for_each("seconds", [-1e18, 1e18, float("nan"), float("inf")])
def test_what_no_clock_should_say_is_no_error(seconds: float) -> None:
    assert minute_of(seconds) == "?"
