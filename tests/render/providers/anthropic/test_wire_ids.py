"""Ids of calls on the wire: as the API takes them, and no two alike."""

import re

from hypothesis import given
from hypothesis import strategies as st

from render.providers._rounds import ID_LENGTH_MAX, wire_id

PAIRS = st.one_of(st.text(), st.text("ab_./ä", max_size=4), st.text("a.", min_size=60))


@given(PAIRS)
def test_an_id_is_one_that_the_api_takes_and_its_own_where_it_takes_that(pair: str) -> None:
    found = wire_id(pair)
    assert re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{ID_LENGTH_MAX}}}", found)
    assert wire_id(found) == found
    if re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{ID_LENGTH_MAX}}}", pair):
        assert found == pair


@given(st.lists(PAIRS, unique=True))
def test_two_calls_never_share_one(pairs: list[str]) -> None:
    assert len({wire_id(pair) for pair in pairs}) == len(pairs)
