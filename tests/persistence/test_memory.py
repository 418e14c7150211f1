"""The in-memory store keeps the contract."""

import pytest

from persistence import EventStore, MemoryStore
from persistence.testing import StoreContract

from .contract import T, prompt


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> EventStore:
        return MemoryStore()


def test_it_keeps_bytes_so_that_the_codec_is_always_exercised() -> None:
    store = MemoryStore()
    event = prompt("a")
    store.append(T, [event], expected_version=0)
    [(_, back)] = store.read(T)
    assert back == event
    assert back is not event
