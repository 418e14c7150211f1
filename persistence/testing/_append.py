"""What `append` promises."""

from itertools import repeat

from blocks import (
    BlockId,
    CallId,
    CodecError,
    MisuseError,
    OpaqueBlock,
    TimelineId,
    TooLargeError,
    ToolResult,
    TurnId,
    UserPrompt,
    VersionConflictError,
)
from persistence._limits import APPEND_EVENTS_MAX, EVENT_BYTES_MAX
from persistence._store import EventStore
from persistence.search._find_by_path import block_at
from persistence.testing._events import TURN, T, U, forked, holding, many, refused, said, versions


class AppendContract:
    """An append writes all or nothing, at the expected version; repeating it is harmless."""

    def test_what_goes_in_comes_out_in_order(self, store: EventStore) -> None:
        assert store.append(T, [said("a"), said("b")], expected_version=0) == 2
        assert store.append(T, [said("c")], expected_version=2) == 3
        assert store.read(T) == [(1, said("a")), (2, said("b")), (3, said("c"))]
        assert store.head(T) == 3

    def test_timelines_do_not_mix(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        store.append(U, many(1), expected_version=0)
        assert (store.head(T), store.head(U)) == (2, 1)
        assert versions(store.read(U)) == [1]

    def test_an_unknown_timeline_is_an_empty_one(self, store: EventStore) -> None:
        assert store.head(T) == 0
        assert list(store.read(T)) == []
        assert store.load_window(T).version == 0

    def test_the_second_writer_is_told_what_was_found(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        for expected in (0, 1, 3):
            with refused(VersionConflictError, f"expected version {expected}, found 2"):
                store.append(T, [said("x"), said("y")], expected_version=expected)
            assert versions(store.read(T)) == [1, 2], "a refused append leaves nothing behind"

    def test_a_retry_of_what_is_already_there_succeeds_and_writes_nothing(
        self, store: EventStore
    ) -> None:
        store.append(T, many(2), expected_version=0)
        store.append(T, many(2, first=3), expected_version=2)
        assert store.append(T, many(2), expected_version=0) == 2
        assert store.append(T, many(2, first=3), expected_version=2) == 4
        assert versions(store.read(T)) == [1, 2, 3, 4]

    def test_a_retry_that_is_only_partly_there_is_a_conflict(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        with refused(VersionConflictError):
            store.append(T, many(3), expected_version=0)

    def test_an_empty_append_is_refused(self, store: EventStore) -> None:
        with refused(MisuseError, "at least one"):
            store.append(T, [], expected_version=0)

    def test_what_cannot_be_a_name_is_refused(self, store: EventStore) -> None:
        for name in ("", "nul\0", "surrogate \ud800"):
            with refused(MisuseError, "name a timeline"):
                store.append(TimelineId(name), many(1), expected_version=0)
        assert not store.list()

    def test_a_name_has_up_to_1000_bytes(self, store: EventStore) -> None:
        longest = TimelineId("語" * 333 + "x")
        assert store.append(longest, many(1), expected_version=0) == 1
        too_long = TimelineId(f"{longest}y")
        with refused(MisuseError, "more than 1000 bytes"):
            store.append(too_long, many(1), expected_version=0)
        with refused(MisuseError, "more than 1000 bytes"):
            store.fork(longest, too_long, forked(longest, 1), at=1)
        assert [info.id for info in store.list()] == [longest]

    def test_any_other_text_is_a_name(self, store: EventStore) -> None:
        name = TimelineId("'; DROP TABLE events; -- 語\n" + "x" * 300)
        store.append(name, many(1), expected_version=0)
        assert store.read(name) == [(1, said("1", at=1.0))]

    def test_an_append_with_one_event_that_cannot_be_stored_stores_none(
        self, store: EventStore
    ) -> None:
        function = holding(OpaqueBlock("own", {"id": "b", "turn": "t", "call": print}))
        with refused(CodecError):
            store.append(T, [said("a"), function], expected_version=0)
        assert store.head(T) == 0

    def test_an_event_that_is_too_large_is_refused_with_all_that_came_with_it(
        self, store: EventStore
    ) -> None:
        store.append(T, [said("a")], expected_version=0)
        large = holding(UserPrompt(id=BlockId("large"), turn=TURN, text="x" * EVENT_BYTES_MAX))
        with refused(TooLargeError, "event 2 of .*'large'.*limit is 64,000,000.*an artifact"):
            store.append(T, [said("b"), large, said("c")], expected_version=1)
        assert store.read(T) == [(1, said("a"))]
        assert store.append(T, [said("b"), said("c")], expected_version=1) == 3

    def test_an_append_of_too_many_events_is_refused(self, store: EventStore) -> None:
        with refused(TooLargeError, "200,001 events.*in several calls"):
            store.append(T, [*repeat(said("a"), APPEND_EVENTS_MAX + 1)], expected_version=0)
        assert store.head(T) == 0

    def test_ids_may_be_as_long_as_an_event(self, store: EventStore) -> None:
        turn, call = TurnId("t" * 50_000), CallId("c" * 50_000)
        block = ToolResult(id=BlockId("b" * 50_000), turn=turn, call_id=call)
        store.append(T, [holding(block)], expected_version=0)
        assert block_at(store, T, f"tc:{turn}.{call}.result") == block
