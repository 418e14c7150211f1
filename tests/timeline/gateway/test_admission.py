"""Nothing is kept of a request that the provider did not let in, whatever it was and whatever came at the same time."""

import socket
from contextlib import ExitStack, closing
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import BlockAppended, Recorded, TimelineExistsError, TimelineId, VersionConflictError
from persistence import EventStore, MemoryStore
from persistence.testing import StoreContract
from persistence.testing._events import T, U, compacted, forked, many, prompt
from render import Json
from tests import _http
from tests.timeline.gateway._agents import MODEL, Recording, gateway
from timeline.gateway._admission import AdmittingStore, Visit

ANSWER: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 12, "output_tokens": 3},
}
REFUSAL: Json = {"type": "error", "error": {"type": "authentication_error", "message": "no"}}


class TestAdmittingStore(StoreContract):
    """Outside a visit it is a store like any other."""

    @pytest.fixture
    def store(self) -> EventStore:
        return AdmittingStore(MemoryStore())


# What is written in a visit.

NAMES = (T, U, TimelineId("v"))


def logs(store: EventStore) -> dict[TimelineId, Any]:
    """All that a store says of the timelines, in every way that an engine reads them."""
    found = dict[TimelineId, Any]()
    for name in NAMES:
        read: list[Recorded] = []
        while page := store.read(name, after=len(read), limit=3):
            read += page
        window = store.load_window(name)
        assert window.version == store.head(name) == len(read)
        first = window.events[0][0] if window.events else 1
        assert [*window.events] == read[first - 1 :]
        found[name] = read, window.compaction
    return found


@attrs.define
class Twin:
    """The store under test, and a plain one that gets only what is to be kept."""

    kept: MemoryStore = attrs.field(factory=MemoryStore)
    shown: MemoryStore = attrs.field(factory=MemoryStore)
    """All that was written so far, waiting or not."""
    store: AdmittingStore = attrs.field(factory=lambda: AdmittingStore(MemoryStore()))

    def write(self, step: tuple[str, int, int]) -> None:
        """The same write to both; a fork takes what is there."""
        kind, number, count = step
        name = NAMES[number]
        head = self.shown.head(name)
        if kind == "fork":
            source = NAMES[(number + 1) % len(NAMES)]
            at = min(count, self.shown.head(source))
            if at and not head:
                event = forked(source, at)
                for each in (self.shown, self.store):
                    each.fork(source, name, event, at=at)
            return
        events = [*many(count, first=head + 1)]
        if kind == "compact" and head > 2:
            events.append(compacted(f"cut at {head}", cut=head))
        for each in (self.shown, self.store):
            each.append(name, events, expected_version=head)


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "fork", "compact"]), st.integers(0, 2), st.integers(1, 4)),
    max_size=6,
)


@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=4))
def test_what_waits_reads_like_what_is_stored_and_ends_as_if_only_admitted_visits_had_been(
    visits: list[tuple[list[tuple[str, int, int]], bool]],
) -> None:
    twin = Twin()
    for steps, is_admitted in visits:
        before = logs(twin.kept)
        with twin.store.visit() as visit:
            for step in steps:
                twin.write(step)
        assert logs(twin.store) == logs(twin.shown)
        assert logs(twin.store.store) == before
        if is_admitted:
            assert twin.store.admit(visit)
            twin.kept = copy_of(twin.shown)
        else:
            twin.store.turn_away(visit)
            twin.shown = copy_of(twin.kept)
        assert logs(twin.store) == logs(twin.store.store) == logs(twin.kept)
    assert not twin.store._lines


def copy_of(store: MemoryStore) -> MemoryStore:
    copy = MemoryStore()
    for name in NAMES:
        if events := [event for _, event in store.read(name)]:
            copy.append(name, events, expected_version=0)
    return copy


@pytest.fixture
def store() -> AdmittingStore:
    return AdmittingStore(MemoryStore())


def visited(store: AdmittingStore, *texts: str) -> Visit:
    with store.visit() as visit:
        for text in texts:
            store.append(T, [prompt(text)], expected_version=store.head(T))
    return visit


def kept(store: AdmittingStore) -> list[str]:
    events = [event for _, event in store.store.read(T)]
    return [e.id for e in events if isinstance(e, BlockAppended)]


def test_who_builds_on_a_visit_is_admitted_with_it_and_turned_away_with_it(
    store: AdmittingStore,
) -> None:
    first, second = visited(store, "a"), visited(store, "b")
    assert store.admit(second)
    assert kept(store) == ["a", "b"]
    store.turn_away(first)
    assert kept(store) == ["a", "b"], "it is there already"
    third, fourth = visited(store, "c"), visited(store, "d")
    store.turn_away(third)
    assert not store.admit(fourth)
    assert kept(store) == ["a", "b"]
    assert not store._lines


def test_who_came_first_takes_nobody_along(store: AdmittingStore) -> None:
    first, second = visited(store, "a"), visited(store, "b")
    assert store.admit(first)
    assert kept(store) == ["a"]
    store.turn_away(second)
    assert kept(store) == ["a"]


def test_a_write_outside_a_visit_waits_behind_one_that_waits(store: AdmittingStore) -> None:
    visit = visited(store, "a")
    store.append(T, [prompt("b")], expected_version=1)
    assert kept(store) == []
    assert store.admit(visit)
    assert kept(store) == ["a", "b"]


def test_a_visit_that_fails_leaves_nothing(store: AdmittingStore) -> None:
    def fail() -> None:
        with store.visit():
            store.append(T, [prompt("a")], expected_version=0)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert store.head(T) == 0
    assert not store._lines


def test_what_another_process_has_written_meanwhile_is_a_conflict_and_stays(
    store: AdmittingStore,
) -> None:
    visit = visited(store, "a")
    store.store.append(T, [prompt("another's")], expected_version=0)
    with pytest.raises(VersionConflictError):
        store.admit(visit)
    store.turn_away(visit)
    assert kept(store) == ["another's"]
    with pytest.raises(VersionConflictError), store.visit():
        store.append(T, [prompt("a")], expected_version=0)
    with pytest.raises(TimelineExistsError), store.visit():
        store.fork(T, T, forked(T, 1), at=1)


# Behind a gateway.

pytestmark = pytest.mark.network
SECRET = "INJECTEDMARK"  # noqa: S105 -- a text


def request(*texts: str) -> Json:
    """A history: what the user and the model have said in turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"model": MODEL, "max_tokens": 9, "messages": messages}


def texts_in(store: MemoryStore) -> dict[str, list[str]]:
    """What is kept, by timeline."""
    return {
        info.id: [
            str(event) for _, event in store.read(info.id) if isinstance(event, BlockAppended)
        ]
        for info in store.list()
    }


KNOWN = ("Hello", "Hi.", "Go on.")
HISTORIES = {
    "a new conversation": (f"Run this: {SECRET}",),
    "one that goes on": (*KNOWN, "Yes.", SECRET),
    "one that went another way": ("Hello", "Hi.", SECRET),
    "one that went back": ("Hello", "Hi.", "Go on.", "No.", SECRET, "Oh.", "Well."),
}


def post(url: str, body: Json) -> int:
    headers = {"anthropic-version": "2023-06-01"}
    with _http.client() as http:
        return http.post(f"{url}/v1/messages", json=body, headers=headers).status_code


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_request_that_the_provider_refuses_for_its_sender_leaves_nothing(
    history: tuple[str, ...], status: int
) -> None:
    store = MemoryStore()
    with Recording(answer=ANSWER) as up, gateway(store=store, upstream=up.url) as server:
        assert post(server.url, request(*KNOWN)) == 200
        before = texts_in(store)
        up.answers += [(status, REFUSAL)] * 2
        for _ in range(2):
            assert post(server.url, request(*history)) == status
        assert texts_in(store) == before
        assert post(server.url, request(*KNOWN, "Yes.", "Thanks.")) == 200
        assert post(server.url, request(*history)) == 200
        assert SECRET in str(texts_in(store)), "once it is let in, it is kept"
        assert len(up.received) == 5
    assert "Thanks." in str(texts_in(store))


@pytest.mark.parametrize("status", [400, 404, 429, 500, 529])
def test_a_request_that_fails_for_another_reason_is_kept_as_it_will_come_again(
    status: int,
) -> None:
    store = MemoryStore()
    with Recording(status=status, answer=REFUSAL) as up:
        with gateway(store=store, upstream=up.url) as server:
            assert post(server.url, request("Hello")) == status
        assert "Hello" in str(texts_in(store))


def test_a_request_that_is_never_answered_leaves_nothing() -> None:
    """Otherwise who has no key could hang up early."""
    store = MemoryStore()
    with ExitStack() as opened:
        silent = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        server = opened.enter_context(gateway(store=store, upstream=url))
        headers = {"anthropic-version": "2023-06-01"}
        with closing(_http.sent(f"{server.url}/v1/messages", request(SECRET), headers)):
            taken, _ = silent.accept()
            opened.enter_context(taken)
            assert taken.recv(1)
    assert texts_in(store) == {}
    with gateway(store=store, upstream="http://127.0.0.1:9") as server:
        assert post(server.url, request(SECRET)) == 502
    assert texts_in(store) == {}


def test_a_store_that_cannot_keep_a_request_does_not_keep_its_answer_from_the_client(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError("the disk is full")

    store = MemoryStore()
    with Recording(answer=ANSWER) as up, gateway(store=store, upstream=up.url) as server:
        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "append", full)
            assert post(server.url, request("Hello")) == 200
        assert "the disk is full" in caplog.text
        assert post(server.url, request("Hello")) == 200
        assert len(texts_in(store)) == 1
