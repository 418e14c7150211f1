"""The rooms of the page: a law over all windows, and who gives way."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from render import Policy
from render.policy._context import PageRoom
from tests._table import for_each

TUNING = Path(__file__).parents[3] / "docs" / "tuning.md"
ROWS = re.findall(
    r"^\| ([\d,]+(?: \| [\d,]+){5}) \|$", TUNING.read_text(encoding="utf-8"), re.MULTILINE
)
WINDOW = 30_000


@for_each("row", ROWS)
def test_the_table_in_the_documentation_is_the_law(row: str) -> None:
    assert len(ROWS) == 5
    window, page, state, found, done, working = (
        int(cell.replace(",", "")) for cell in row.split(" | ")
    )
    room = PageRoom.of(Policy(), window)
    assert abs(room.whole - room.working - page) <= 10
    parts = (room.state, room.findings, room.done, room.working)
    assert all(abs(a - b) <= 10 for a, b in zip(parts, (state, found, done, working), strict=True))


def test_what_is_told_in_few_tokens_leaves_the_working_set_its_room() -> None:
    """Also where all that may be said would fill the page."""
    room = PageRoom.of(Policy(), WINDOW, most=6_000)
    assert room.state + room.findings + room.done > 6_000 - 100
    assert room.working_beside(1_400) == room.working


@given(st.integers(0, 40_000), st.integers(0, 20_000))
def test_all_parts_together_have_no_more_than_there_is(most: int, told: int) -> None:
    room = PageRoom.of(Policy(), WINDOW, most)
    assert room.state + room.findings + room.done <= max(most, 0)
    used = min(told, room.state + room.findings + room.done)
    working = room.working_beside(used)
    assert 0 <= working <= room.working
    assert used + working <= most
