"""What a store promises about the content of events, and about `close`."""

from blocks import (
    AssistantThinking,
    BlockAppended,
    BlockId,
    ClosedError,
    Event,
    OpaqueBlock,
    OpaqueEvent,
    UserPrompt,
)
from persistence._store import EventStore
from persistence.testing._events import TURN, T, U, forked, holding, many, refused, said, versions


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
        events = [said(str(n), at=at) for n, at in enumerate([5.0, 5.0, -1e9, 1e300])]
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
