"""Of foreign ids a filter remembers thousands, none wrongly as unknown, in little room."""

from hypothesis import given
from hypothesis import strategies as st

from blocks import Sources
from blocks._naming import GENERATIONS_MAX


@given(st.lists(st.text(), max_size=40), st.text())
def test_what_was_added_is_there_also_when_it_was_written_and_read(
    names: list[str], other: str
) -> None:
    sources = Sources()
    for name in names:
        sources = Sources(sources.encoded())
        sources.add([name])
    again = Sources(sources.encoded())
    assert all(name in again for name in names)
    assert again.encoded() == sources.encoded()
    if not names:
        assert other not in again


def test_thousands_are_remembered_and_few_others_seem_to_be() -> None:
    sources = Sources()
    sources.add(f"msg_{number}" for number in range(20_000))
    assert all(f"msg_{number}" in sources for number in range(20_000 - 3_840, 20_000))
    assert sum(f"other_{number}" in sources for number in range(2_000)) < 100
    assert len(sources.encoded()) < GENERATIONS_MAX * 620


@given(st.text())
def test_what_is_no_filter_is_an_empty_one(text: str) -> None:
    sources = Sources(text)
    sources.add(["msg_1"])
    assert "msg_1" in Sources(sources.encoded())
