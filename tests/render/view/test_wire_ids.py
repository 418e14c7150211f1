"""Ids of calls on the wire: what the provider takes, each once, and one's own where that is possible."""

import re

from hypothesis import given
from hypothesis import strategies as st

from render.view._wire_ids import LENGTH_MAX, free_wire_id

TAKEN_BY_THE_PROVIDER = re.compile(rf"[a-zA-Z0-9_-]{{1,{LENGTH_MAX}}}")
IDS = st.one_of(st.sampled_from(("", "c1", "c1_2", "c1_2_2", "a b", "é", "x" * 70)), st.text())


@given(st.lists(IDS, max_size=12))
def test_every_call_has_an_id_of_its_own_that_the_provider_takes(call_ids: list[str]) -> None:
    taken: set[str] = set()
    for version, call_id in enumerate(call_ids, 1):
        wire_id = free_wire_id(call_id, version, taken)
        assert TAKEN_BY_THE_PROVIDER.fullmatch(wire_id)
        assert wire_id not in taken
        if TAKEN_BY_THE_PROVIDER.fullmatch(call_id) and call_id not in taken:
            assert wire_id == call_id
        taken.add(wire_id)
