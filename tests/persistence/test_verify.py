"""Any store can be verified, whether it has a way of its own or not."""

from typing import Any

import pytest

from blocks import MisuseError
from persistence import DuckDBStore, MemoryStore, verify

from .contract import T, many


def test_a_store_without_a_way_of_its_own_is_verified_through_its_protocol() -> None:
    class Gap(MemoryStore):
        def read(self, *given: Any, **named: Any) -> Any:
            return [each for each in super().read(*given, **named) if each[0] != 2]

    for store, problems in ((MemoryStore(), []), (Gap(), [(T, 2)])):
        store.append(T, many(3), expected_version=0)
        report = verify(store)
        assert (report.timelines, report.events) == (1, 3)
        assert [(each.timeline, each.version) for each in report.problems] == problems


def test_a_block_id_that_is_used_twice_is_found_in_every_store() -> None:
    store = MemoryStore()
    store.append(T, [*many(2), *many(1)], expected_version=0)
    [problem] = verify(store).problems
    assert (problem.version, problem.what) == (
        3,
        "block id 'block 1' was already used at version 1",
    )


@pytest.mark.parametrize("target", [3, None, object(), DuckDBStore, MemoryStore, []])
def test_what_is_no_store_is_not_verified(target: Any) -> None:
    with pytest.raises(
        MisuseError, match="is not a store; give a store, or the path or URL of one"
    ):
        verify(target)
