"""The token curve fits its width and shows what happened."""

from tests._table import for_each
from timeline.cli._results import curve
from timeline.cli._terminal import short
from timeline.replay import Point


def points(*tokens: int, full: int = 0, **events: str) -> list[Point]:
    """Points with these tokens; `c3="pruned"` marks the third."""
    return [
        Point(call=n, at=0.0, tokens=t, full_tokens=full or t, events=tuple(_of(events, n)))
        for n, t in enumerate(tokens)
    ]


def _of(events: dict[str, str], number: int) -> list[str]:
    return [events[f"c{number}"]] if f"c{number}" in events else []


@for_each("calls", [1, 2, 39, 80, 1_000])
def test_no_line_is_wider_than_the_screen(calls: int) -> None:
    drawn = curve(points(*range(1, calls + 1)), 1_000, width=80).plain.splitlines()
    assert all(len(line) <= 80 for line in drawn)
    assert len(drawn) == 10 + 2


def test_the_tallest_call_reaches_its_height_and_the_window_is_a_line() -> None:
    rows = curve(points(*[100] * 30, *[50] * 30), 100, width=80).plain.splitlines()
    assert rows[0].startswith("   100 │█")
    assert rows[0].endswith("─")
    assert rows[5].count("█") == 60


def test_what_happened_is_marked_under_its_call() -> None:
    drawn = curve(points(*[10] * 60, c5="compacted", c40="pruned"), 20, width=80).plain
    marks = drawn.splitlines()[-3]
    assert (marks.index("▲") - 8, marks.index("△") - 8) == (5, 40)
    assert "▲ summary written" in drawn
    assert "△ expired results hidden" in drawn
    assert "shortened" not in drawn


def test_everything_is_a_dot_while_it_is_in_sight() -> None:
    assert "·" in curve(points(*[50] * 60, full=85), 100, width=80).plain.splitlines()[1]
    assert "·" not in curve(points(*[10] * 60, full=900), 20, width=80).plain.splitlines()[1]


def test_a_small_session_in_a_huge_window_is_drawn_to_its_own_height() -> None:
    rows = curve(points(*range(10, 70)), 1_000_000, width=80).plain.splitlines()
    assert rows[0].startswith("    86 │")


@for_each(
    ("number", "text"), [(0, "0"), (999, "999"), (1_500, "1.5k"), (60_000, "60k"), (4.3e6, "4.3M")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text
