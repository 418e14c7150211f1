"""A store that has nothing but what it must have keeps every promise, with what it inherits."""

from collections.abc import Sequence

import pytest

from blocks import Event, MisuseError, Recorded, TimelineId
from persistence import EventStore, MemoryStore, Rest, TimelineInfo, verify
from persistence.testing import StoreContract
from tests.persistence.contract import T, U, compacted, forked, many


class Plain(EventStore):
    """The abstract methods of a store and nothing besides."""

    def __init__(self) -> None:
        self._inner = MemoryStore()

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        return self._inner.append(timeline_id, events, expected_version=expected_version)

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return self._inner.read(timeline_id, after=after, limit=limit)

    def head(self, timeline_id: TimelineId) -> int:
        return self._inner.head(timeline_id)

    def list(self) -> Sequence[TimelineInfo]:
        return self._inner.list()

    def close(self) -> None:
        self._inner.close()


class TestPlainStore(StoreContract):
    @pytest.fixture
    def store(self) -> Plain:
        return Plain()


def test_what_it_cannot_do_is_refused_and_says_so() -> None:
    with Plain() as store:
        store.append(T, [*many(3), compacted("c", cut=2)], expected_version=0)
        with pytest.raises(MisuseError, match="this store cannot remove events"):
            store.trim(T, 2)
        with pytest.raises(MisuseError, match="this store cannot remove events"):
            store.rewrite(T, {})
        with pytest.raises(MisuseError, match="this store cannot remove events"):
            store.remove(T)
        with pytest.raises(MisuseError, match="cannot hold artifacts"):
            store.artifacts()
        assert (store.kept(T), store.trimmed(), store.erase()) == (Rest(), {}, ())
        assert not store.altered(T, 0, 4)
        assert not any((store.can_remove, store.keeps_artifacts, store.hears_others()))
        store.watch(T, lambda: None)()
        assert verify(store).ok


def test_a_store_without_the_abstract_methods_cannot_be_made() -> None:
    class Half(EventStore):
        def head(self, timeline_id: TimelineId) -> int:
            return len(timeline_id)

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]  # it is refused, which the test is about


def test_a_log_of_more_than_a_page_is_forked_and_copied_whole() -> None:
    with Plain() as store, Plain() as other:
        store.append(T, many(2_500), expected_version=0)
        assert store.fork(T, U, forked(T, 2_400), at=2_400) == 2_401
        assert store.copy_to(other).events == 2_500 + 2_401
        assert other.read_bytes(U, after=2_399) == store.read_bytes(U, after=2_399)
        assert other.load_window(U) == store.load_window(U)
