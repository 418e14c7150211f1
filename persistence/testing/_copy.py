"""What `Copyable` promises; a store without it is copied event by event."""

from blocks import CodecError, MisuseError, VersionConflictError, encode_event
from persistence._copy import copy_store
from persistence._memory import MemoryStore
from persistence._store import Copyable, EventStore
from persistence.testing._events import T, U, compacted, many, refused, versions
from persistence.testing._search import odd_log

OLD = b'{"event":"FromTheFuture","id":"e",  "at":1.50, "deep":{"b":1e2,"a":null}}'
"""JSON in a form that this version would not write."""


class CopyContract:
    """Timelines can be copied from a store into another one and back."""

    def test_bytes_come_back_as_they_went_in(self, store: EventStore) -> None:
        if not isinstance(store, Copyable):
            return
        assert store.append_bytes(T, [OLD, encode_event(compacted("c", cut=1))], expected_version=0)
        store.append(T, many(2), expected_version=2)
        found = store.read_bytes(T, limit=3)
        assert found[0] == (1, OLD)
        assert versions(store.read(T)) == [1, 2, 3, 4]
        assert [data for _, data in store.read_bytes(T, after=2)] == [
            encode_event(event) for event in many(2)
        ]
        assert store.load_window(T).compaction == (2, compacted("c", cut=1))

    def test_bytes_are_appended_under_the_rules_of_append(self, store: EventStore) -> None:
        if not isinstance(store, Copyable):
            return
        data = [encode_event(event) for event in many(2)]
        assert store.append_bytes(T, data, expected_version=0) == 2
        assert store.append_bytes(T, data, expected_version=0) == 2, "a repeat"
        with refused(VersionConflictError):
            store.append_bytes(T, [OLD], expected_version=1)
        with refused(MisuseError):
            store.append_bytes(T, [], expected_version=2)
        with refused(CodecError):
            store.append_bytes(T, [*data, b"[1]"], expected_version=2)
        assert store.head(T) == 2

    def test_a_copy_of_a_copy_is_the_original(self, store: EventStore) -> None:
        first, last = MemoryStore(), MemoryStore()
        first.append(T, odd_log(), expected_version=0)
        first.append(U, many(3), expected_version=0)
        copy_store(first, store)
        copy_store(store, last)
        for name in (T, U):
            assert last.read_bytes(name) == first.read_bytes(name)
            assert store.load_window(name) == first.load_window(name)
        assert [info.id for info in store.list()] == [info.id for info in first.list()]
