"""The contract of every store, and a way to run it without a test runner.

Here is what a log promises: append, read, list, fork, the content of events, and `close`.
"""

from collections.abc import Callable
from contextlib import closing
from itertools import repeat
from traceback import format_exception_only

from blocks import (
    AssistantThinking,
    BlockAppended,
    BlockId,
    CallId,
    ClosedError,
    CodecError,
    Event,
    MisuseError,
    OpaqueBlock,
    OpaqueEvent,
    TimelineExistsError,
    TimelineId,
    TooLargeError,
    ToolResult,
    TurnId,
    UnknownTimelineError,
    UserPrompt,
    VersionConflictError,
)
from persistence._log import APPEND_EVENTS_MAX, EVENT_BYTES_MAX
from persistence._store import EventStore
from persistence.search._paths import block_at
from persistence.testing._concurrency import ConcurrencyContract, InterruptContract
from persistence.testing._derived import CopyContract, SearchContract, SkimContract
from persistence.testing._events import (
    TURN,
    T,
    U,
    compacted,
    expanded,
    forked,
    holding,
    many,
    prompt,
    refused,
    versions,
)
from persistence.testing._retention import RetentionContract


class AppendContract:
    """An append writes all or nothing, at the expected version; repeating it is harmless."""

    def test_what_goes_in_comes_out_in_order(self, store: EventStore) -> None:
        assert store.append(T, [prompt("a"), prompt("b")], expected_version=0) == 2
        assert store.append(T, [prompt("c")], expected_version=2) == 3
        assert store.read(T) == [(1, prompt("a")), (2, prompt("b")), (3, prompt("c"))]
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
                store.append(T, [prompt("x"), prompt("y")], expected_version=expected)
            assert versions(store.read(T)) == [1, 2], "a refused append leaves nothing behind"

    def test_a_retry_of_what_is_already_there_succeeds_and_writes_nothing(
        self, store: EventStore
    ) -> None:
        store.append(T, many(2), expected_version=0)
        store.append(T, many(2, first=3), expected_version=2)
        assert store.append(T, many(2), expected_version=0) == 2
        assert store.append(T, many(2, first=3), expected_version=2) == 4
        assert versions(store.read(T)) == [1, 2, 3, 4]

    def test_a_retry_at_another_version_succeeds_and_writes_nothing(
        self, store: EventStore
    ) -> None:
        """Whoever did not learn the outcome of an append may look for the version again, which others have changed."""
        store.append(T, many(2), expected_version=0)
        assert store.append(T, many(2), expected_version=2) == 2
        store.append(T, many(2, first=3), expected_version=2)
        store.append(U, many(2), expected_version=0)
        for expected in (0, 1, 4, 9):
            assert store.append(T, many(2), expected_version=expected) == 2
        assert store.append(T, many(2, first=3), expected_version=4) == 4
        other = [holding(UserPrompt(id=BlockId("b"), turn=TURN, text=text)) for text in "xy"]
        store.append(T, other[:1], expected_version=4)
        assert store.append(T, other[1:], expected_version=5) == 6, "only its id is the same"
        assert versions(store.read(T)) == [1, 2, 3, 4, 5, 6]

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
        assert store.read(name) == [(1, prompt("1", at=1.0))]

    def test_an_append_with_one_event_that_cannot_be_stored_stores_none(
        self, store: EventStore
    ) -> None:
        function = holding(OpaqueBlock("own", {"id": "b", "turn": "t", "call": print}))
        with refused(CodecError):
            store.append(T, [prompt("a"), function], expected_version=0)
        assert store.head(T) == 0

    def test_an_event_that_is_too_large_is_refused_with_all_that_came_with_it(
        self, store: EventStore
    ) -> None:
        store.append(T, [prompt("a")], expected_version=0)
        large = holding(UserPrompt(id=BlockId("large"), turn=TURN, text="x" * EVENT_BYTES_MAX))
        with refused(TooLargeError, "event 2 of .*'large'.*limit is 64,000,000.*an artifact"):
            store.append(T, [prompt("b"), large, prompt("c")], expected_version=1)
        assert store.read(T) == [(1, prompt("a"))]
        assert store.append(T, [prompt("b"), prompt("c")], expected_version=1) == 3

    def test_an_append_of_too_many_events_is_refused(self, store: EventStore) -> None:
        with refused(TooLargeError, "200,001 events.*in several calls"):
            store.append(T, [*repeat(prompt("a"), APPEND_EVENTS_MAX + 1)], expected_version=0)
        assert store.head(T) == 0

    def test_ids_may_be_as_long_as_an_event(self, store: EventStore) -> None:
        turn, call = TurnId("t" * 50_000), CallId("c" * 50_000)
        block = ToolResult(id=BlockId("b" * 50_000), turn=turn, call_id=call)
        store.append(T, [holding(block)], expected_version=0)
        assert block_at(store, T, f"tc:{turn}.{call}.result") == block


class ReadContract:
    """Reads are gap-free, ordered, and return no more than requested."""

    def test_the_tip_is_the_version_and_the_id_of_the_newest_event(self, store: EventStore) -> None:
        assert store.tip(T) == (0, "")
        store.append(T, [prompt("a"), prompt("b")], expected_version=0)
        assert store.tip(T) == (2, "b")
        for version, name in enumerate(("\0\\0\\", "'; --", "\ud800"), 3):
            store.append(T, [prompt(name)], expected_version=version - 1)
            assert store.tip(T) == (version, store.read(T, after=version - 1)[0][1].id)
        store.fork(T, U, event := forked(T, 2), at=2)
        assert store.tip(U) == (3, event.id)

    def test_pages_follow_one_another(self, store: EventStore) -> None:
        store.append(T, many(10), expected_version=0)
        assert versions(store.read(T, after=0, limit=4)) == [1, 2, 3, 4]
        assert versions(store.read(T, after=4, limit=4)) == [5, 6, 7, 8]
        assert versions(store.read(T, after=8, limit=4)) == [9, 10]
        assert versions(store.read(T, after=10, limit=4)) == []
        assert versions(store.read(T, after=99)) == []

    def test_pages_of_large_events_may_be_short_but_only_the_end_is_empty(
        self, store: EventStore
    ) -> None:
        large = [prompt(f"{n} {'x' * 1_500_000}") for n in range(6)]
        store.append(T, [*many(40), *large, *many(3, first=41)], expected_version=0)
        numbers: list[int] = []
        while page := store.read(T, after=len(numbers), limit=100):
            numbers += versions(page)
        assert numbers == versions([*store.log(T)]) == list(range(1, 50)), "however short the pages"
        assert versions([*store.log(T, after=39, last=43)]) == [40, 41, 42, 43]
        assert [*store.log_bytes(T, after=46)] == [*store.read_bytes(T, after=46)]
        assert [*store.log(T, after=43, last=43)] == [*store.log(U)] == []

    def test_a_page_that_nobody_can_mean_is_refused(self, store: EventStore) -> None:
        for after, limit in ((-1, 1), (0, 0), (0, -5)):
            with refused(MisuseError, "after="):
                store.read(T, after=after, limit=limit)

    def test_the_list_names_all_timelines_oldest_first(self, store: EventStore) -> None:
        store.append(U, [prompt("a", at=50.0)], expected_version=0)
        store.append(T, [prompt("a", at=10.0), prompt("b", at=70.0)], expected_version=0)
        store.append(U, [prompt("c", at=60.0)], expected_version=1)
        rows = [(i.id, i.version, i.created_at, i.updated_at) for i in store.list()]
        assert rows == [(T, 2, 10.0, 70.0), (U, 2, 50.0, 60.0)]

    def test_without_a_compaction_the_window_is_everything(self, store: EventStore) -> None:
        store.append(T, many(3), expected_version=0)
        window = store.load_window(T)
        assert (window.version, window.compaction) == (3, None)
        assert versions(window.events) == [1, 2, 3]

    def test_the_window_starts_at_the_cut_of_the_latest_compaction(self, store: EventStore) -> None:
        store.append(T, [*many(6), compacted("c1", cut=4)], expected_version=0)
        store.append(T, [*many(3, first=7), compacted("c2", start=4, cut=9)], expected_version=7)
        window = store.load_window(T)
        assert window.compaction == (11, compacted("c2", start=4, cut=9))
        assert versions(window.events) == [9, 10, 11]
        assert window.version == 11

    def test_an_undone_compaction_gives_way_to_the_one_before(self, store: EventStore) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 7)], expected_version=0)
        window = store.load_window(T)
        assert window.compaction == (6, first)
        assert versions(window.events) == [3, 4, 5, 6, 7, 8]
        store.append(T, [expanded("y", 6)], expected_version=8)
        window = store.load_window(T)
        assert window.compaction is None
        assert versions(window.events) == list(range(1, 10))

    def test_undoing_an_older_compaction_leaves_the_latest_in_force(
        self, store: EventStore
    ) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 6)], expected_version=0)
        assert store.load_window(T).compaction == (7, second)


class ForkContract:
    """A fork is a byte-exact copy up to a version, with the compaction that was in force there."""

    def test_a_fork_shares_the_past_and_nothing_else(self, store: EventStore) -> None:
        store.append(T, many(5), expected_version=0)
        assert store.fork(T, U, forked(T, 3), at=3) == 4
        assert store.read(U) == [*store.read(T, limit=3), (4, forked(T, 3))]
        store.append(U, [prompt("x")], expected_version=4)
        assert (store.head(T), store.head(U)) == (5, 5)

    def test_a_fork_inherits_what_was_folded_at_its_version(self, store: EventStore) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        window = store.load_window(U)
        assert window.compaction == (6, first), "later compactions are not the fork's"
        assert versions(window.events) == [3, 4, 5, 6, 7]

    def test_the_list_dates_a_fork_from_its_first_event(self, store: EventStore) -> None:
        store.append(T, many(5), expected_version=0)
        store.fork(T, U, forked(T, 2), at=2)
        assert [(i.id, i.created_at, i.updated_at) for i in store.list()] == [
            (T, 1.0, 5.0),
            (U, 1.0, 9.0),
        ]

    def test_a_fork_of_nothing_is_refused(self, store: EventStore) -> None:
        with refused(UnknownTimelineError, "my talk"):
            store.fork(T, U, forked(T, 1), at=1)
        assert store.head(U) == 0

    def test_a_fork_at_no_version_is_refused(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        for at in (-1, 0, 3):
            with refused(MisuseError, "1 to 2"):
                store.fork(T, U, forked(T, at), at=at)
            assert store.head(U) == 0

    def test_a_fork_never_lands_on_an_existing_timeline(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        store.append(U, many(1), expected_version=0)
        with refused(TimelineExistsError):
            store.fork(T, U, forked(T, 1), at=1)
        with refused(TimelineExistsError):
            store.fork(T, T, forked(T, 1), at=1)
        assert (store.head(T), store.head(U)) == (2, 1)


class ContentContract:
    """Everything that an event contains comes back equal, or visibly replaced."""

    def test_text_comes_back_unchanged(self, store: EventStore) -> None:
        odd = ("", "nul \0 inside", "quotes ' \" \\ `", "\\u0000 spelled out", "語 🙂\u2028")
        for version, text in enumerate((*odd, "x" * 300_000)):
            event = holding(UserPrompt(id=BlockId("b"), turn=TURN, text=text))
            store.append(T, [event], expected_version=version)
            assert store.read(T, after=version) == [(version + 1, event)]

    def test_numbers_of_any_size_come_back_unchanged(self, store: EventStore) -> None:
        for version, number in enumerate((2**63, -(2**64), 10**40, 0.1, 1e308)):
            block = AssistantThinking(id=BlockId("b"), turn=TURN, provider={"n": number})
            store.append(T, [holding(block)], expected_version=version)
            assert store.read(T, after=version) == [(version + 1, holding(block))]

    def test_what_json_cannot_hold_is_replaced_visibly(self, store: EventStore) -> None:
        value = {"nan": float("nan"), "inf": float("inf"), "half": "a\ud800b", "null": None}
        block = AssistantThinking(id=BlockId("b"), turn=TURN, provider=value)
        store.append(T, [holding(block)], expected_version=0)
        [(_, event)] = store.read(T)
        assert isinstance(event, BlockAppended)
        assert isinstance(event.block, AssistantThinking)
        assert event.block.provider == {
            "nan": "NaN",
            "inf": "inf",
            "half": "a\\ud800b",
            "null": None,
        }

    def test_times_may_be_equal_backward_or_absurd(self, store: EventStore) -> None:
        events = [prompt(str(n), at=at) for n, at in enumerate([5.0, 5.0, -1e9, 1e300])]
        store.append(T, events, expected_version=0)
        assert [event for _, event in store.read(T)] == events

    def test_unknown_events_and_blocks_survive(self, store: EventStore) -> None:
        fields = {"id": "e", "at": 1.5, "deep": {"list": [1, None, {"x": 10**30}]}}
        events: list[Event] = [
            OpaqueEvent("FromTheFuture", fields),
            holding(OpaqueBlock("my.own", {"id": "b", "turn": "t", "score": 0.5})),
        ]
        store.append(T, events, expected_version=0)
        store.fork(T, U, forked(T, 2), at=2)
        for name in (T, U):
            assert [event for _, event in store.read(name, limit=2)] == events

    def test_an_event_that_only_looks_like_a_compaction_folds_nothing(
        self, store: EventStore
    ) -> None:
        fake = OpaqueEvent("RangeCompacted", {"id": "e", "at": 1.0, "cut": "no number"})
        store.append(T, [*many(2), fake], expected_version=0)
        assert versions(store.load_window(T).events) == [1, 2, 3]


class CloseContract:
    """A closed store raises `ClosedError`."""

    def test_close_may_be_repeated_and_everything_else_is_refused(self, store: EventStore) -> None:
        store.append(T, many(1), expected_version=0)
        store.close()
        store.close()
        for use in (
            lambda: store.append(T, many(1), expected_version=1),
            lambda: store.read(T),
            lambda: store.load_window(T),
            lambda: store.head(T),
            store.list,
            lambda: store.fork(T, U, forked(T, 1), at=1),
        ):
            with refused(ClosedError):
                use()


class StoreContract(
    AppendContract,
    ReadContract,
    ForkContract,
    ContentContract,
    CopyContract,
    SearchContract,
    RetentionContract,
    SkimContract,
    ConcurrencyContract,
    InterruptContract,
    CloseContract,
):
    """All promises of a store, a test each; `store` is a new, empty store, which is closed after the test."""

    @classmethod
    def broken_promises(cls, open_store: Callable[[], EventStore]) -> dict[str, str]:
        """The tests that a store fails, with the reasons; empty: it keeps all promises. For whoever has no pytest.

        `open_store` is called for each test, and must return a new, empty store.
        """
        contract, broken = cls(), dict[str, str]()
        for name in (name for name in dir(contract) if name.startswith("test_")):
            with closing(open_store()) as store:
                try:
                    getattr(contract, name)(store)
                except Exception as error:  # noqa: BLE001 -- a store that is broken may raise anything: that is told
                    broken[name] = "".join(format_exception_only(error)).strip()
        return broken
