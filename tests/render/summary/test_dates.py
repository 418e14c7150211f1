"""Times in the texts that a model reads."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from render.summary._text import SECONDS_MAX, minute_of
from tests._table import for_each


@given(st.floats(min_value=0, max_value=SECONDS_MAX, exclude_max=True))
def test_it_is_the_date_that_the_standard_library_says(seconds: float) -> None:
    expected = datetime.fromtimestamp(int(seconds), UTC)
    assert minute_of(seconds) == f"{expected.year:04}-{expected:%m-%d %H:%M}"


@for_each("seconds", [-1.0, SECONDS_MAX, float("nan"), float("inf")])
def test_what_no_clock_should_say_is_no_error(seconds: float) -> None:
    assert minute_of(seconds) == "?"
