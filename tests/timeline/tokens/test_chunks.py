"""Cutting long texts: nothing lost, nothing too long, and no token more at an exact cut."""

from hypothesis import given, settings
from hypothesis import strategies as st

from timeline.tokens._counter import CHUNK_CHARS_MAX, chunks, count_o200k, lines, o200k

awkward = st.text(
    st.sampled_from("ab'sXÉ界 \t\n\n\r/.,;1237\u3000\u2028\x1c😀"), min_size=1, max_size=300
)


def count(text: str) -> int:
    return len(o200k().encode(text, disallowed_special=()))


@given(awkward, st.integers(min_value=1, max_value=40))
@settings(deadline=None)  # the first example builds the encoding
def test_the_pieces_are_the_text(text: str, chars_max: int) -> None:
    pieces = list(chunks(text, chars_max))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= chars_max for piece in pieces)


@given(awkward)
@settings(deadline=None)  # the first example builds the encoding
def test_cutting_into_lines_costs_no_token(text: str) -> None:
    """Follows from the o200k pattern: no piece of it crosses such a point."""
    assert "".join(lines(text)) == text
    assert sum(map(count, lines(text))) == count(text)
    assert count_o200k(text) == count(text)


def test_ordinary_long_text_counts_as_if_whole() -> None:
    text = "".join(f"    line {number}: value = {number * 7}\n\nnext\n" for number in range(20_000))
    assert len(text) > 4 * CHUNK_CHARS_MAX
    assert sum(map(count, chunks(text))) == count(text)


def test_blind_cuts_cost_next_to_nothing() -> None:
    text = "lorem ipsum dolor " * 40_000
    assert count(text) <= sum(map(count, chunks(text))) <= count(text) + 2 * len(list(chunks(text)))


def test_a_cut_falls_after_the_last_fitting_newline() -> None:
    assert list(chunks("one\ntwo\n three\n/four", 12)) == ["one\ntwo\n", " three\n/four"]
    assert list(chunks("one\n\n/two\nthree", 8)) == ["one\n\n/tw", "o\nthree"]
    assert list(chunks("short")) == ["short"]
    assert list(chunks("")) == [""]


def test_blank_lines_stay_with_the_line_before() -> None:
    assert lines("[v1]\n  one\n\n- two\n/three\n\t/four\n  \nfive\n") == [
        "[v1]\n",
        "  one\n\n",
        "- two\n/three\n",
        "\t/four\n  \n",
        "five\n",
    ]
    assert lines("") == [""]
