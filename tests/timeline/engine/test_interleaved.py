"""Several timelines on one log, in any interleaving, with faults: whatever happens, it is one log.

Each step is done by one of the timelines.  Right before something is appended another one may append,
hide or compact first, and an append may fail before it happened, or after.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from blocks import (
    BlockAppended,
    Event,
    MisuseError,
    RangeCompacted,
    RangeExpanded,
    StoreError,
    TimelineId,
    UserPrompt,
    text_of,
)
from persistence import EventStore, MemoryStore
from persistence.testing import RecordingStore
from render import open_view, show
from tests._builders import context, open_timeline, request_bytes, response, text, tool_use
from tests._sizes import sized
from tests.persistence.contract import STORES, new_store
from timeline import Timeline

HISTORIES: Final = {"memory": 25}
"""How many to try, where it is not `FEW`."""
FEW: Final = sized(3, 20)
NAME = TimelineId("talk")
TIMELINES = 3
STEPS = 30
which = st.integers(0, TIMELINES - 1)


class LostAnswerError(StoreError):
    """What the store says of an append that failed."""


class Racing(RecordingStore):
    """Before an append it lets somebody else go first, or fails; or it fails afterwards."""

    go_first: Callable[[], object] | None = None
    fails: str = ""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        if (rival := self.go_first) is not None:
            self.go_first = None
            rival()
        fails, self.fails = self.fails, ""
        if fails == "before":
            raise LostAnswerError("the store is gone")
        version = super().append(timeline_id, events, expected_version=expected_version)
        if fails == "after":
            self.calls[-1].is_done = False
            self.calls[-1].ended = float("inf")
            raise LostAnswerError("the answer is gone")
        return version


class Interleaved(RuleBasedStateMachine):
    """What several agents, or several processes of one, do to a timeline."""

    make: Callable[[Path], EventStore] = staticmethod(lambda _: MemoryStore())

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = Racing(self.make(Path(self.folder.name)))
        self.timelines = [self.opened() for _ in range(TIMELINES)]
        self.rival = self.opened()
        self.acknowledged: list[str] = []
        self.unsure: list[str] = []
        self.number = 0
        self.seen: list[tuple[int, Any]] = []
        self.reader = self.opened().follow(timeout=0)
        self.timelines[0].user("The task.")

    def opened(self) -> Timeline:
        return open_timeline(NAME, store=self.store, window=2500)

    def words(self) -> str:
        self.number += 1
        return f"step {self.number} " + "word " * 60

    def say(self, do: Callable[[str], object]) -> None:
        """Append something new, which is then there once; or, after a fault, at most once."""
        said = self.words()
        try:
            do(said)
        except LostAnswerError:
            self.unsure.append(said)
        else:
            self.acknowledged.append(said)

    def attempt(self, do: Callable[[], object]) -> None:
        """Do what may be refused for a reason, or meet a fault."""
        with suppress(LostAnswerError):
            do()

    # What is done.

    @rule(index=which)
    def steer(self, index: int) -> None:
        self.say(self.timelines[index].steer)

    @rule(index=which)
    def ask(self, index: int) -> None:
        self.say(self.timelines[index].user)

    @rule(index=which)
    def answer(self, index: int) -> None:
        self.say(lambda said: self.timelines[index].record(response(text(said), id=said[:12])))

    @rule(index=which)
    def call_a_tool(self, index: int) -> None:
        self.number += 1
        asked = tool_use(f"c{self.number}", "look")
        self.attempt(lambda: self.timelines[index].record(response(asked, id=f"r{self.number}")))

    @rule(index=which)
    def give_a_result(self, index: int) -> None:
        timeline = self.timelines[index]
        timeline.flush()
        for call in timeline.open_calls[:1]:
            self.store.go_first = None  # who gives the result first is in another test
            self.say(lambda said, call=call: timeline.tool_result(call, said))  # type: ignore[misc]

    @rule(index=which)
    def render(self, index: int) -> None:
        def rendered() -> None:
            assert self.timelines[index].render().violations == ()

        self.attempt(rendered)

    @rule(index=which)
    def compact(self, index: int) -> None:
        self.attempt(self.timelines[index].compact)

    @rule(index=which, place=st.integers(0, 10))
    def hide(self, index: int, place: int) -> None:
        entries = self.timelines[index].view.entries
        if entries:
            block = entries[place % len(entries)].block.id
            self.attempt(lambda: self.timelines[index].hide(block))

    @rule(index=which)
    def expand(self, index: int) -> None:
        with suppress(MisuseError):  # there is nothing to expand
            self.attempt(self.timelines[index].expand)

    @rule(index=which)
    def reopen(self, index: int) -> None:
        self.timelines[index] = self.opened()

    @rule(index=which)
    def fork(self, index: int) -> None:
        self.number += 1
        forked = self.timelines[index].fork(f"fork {self.number}")

        def rendered() -> None:
            assert forked.render().violations == ()

        self.attempt(rendered)

    # What others do at the worst moment.

    @rule(what=st.sampled_from(["steer", "user", "compact", "hide", "render"]))
    def go_first(self, what: str) -> None:
        def go_first() -> None:
            if what in {"steer", "user"}:
                self.say(getattr(self.rival, what))
            elif what == "hide":
                self.rival.flush()
                self.rival.hide(self.rival.view.entries[-1].block.id)
            else:
                getattr(self.rival, what)()

        self.store.go_first = go_first

    @rule(when=st.sampled_from(["before", "after"]))
    def fail(self, when: str) -> None:
        self.store.fails = when

    # What holds after each step.

    def log(self) -> list[tuple[int, Event]]:
        return list(self.store.store.read(NAME, limit=100_000))

    @invariant()
    def what_was_said_is_there_once(self) -> None:
        texts = [text_of(e.block) for _, e in self.log() if isinstance(e, BlockAppended)]
        for said in self.acknowledged:
            assert texts.count(said) == 1
        for said in self.unsure:
            assert texts.count(said) <= 1
        prompts = [e.block for _, e in self.log() if isinstance(e, BlockAppended)]
        turns = [block.turn for block in prompts if isinstance(block, UserPrompt)]
        assert len(set(turns)) == len(turns), "each prompt opens a turn of its own"

    @invariant()
    def no_range_is_folded_twice(self) -> None:
        in_force: dict[int, RangeCompacted] = {}
        for version, event in self.log():
            if isinstance(event, RangeCompacted):
                newest = max(in_force, default=0)
                assert event.start == (in_force[newest].cut if newest else 1)
                assert event.start < event.cut <= version
                in_force[version] = event
            elif isinstance(event, RangeExpanded):
                in_force.pop(event.compaction)

    @invariant()
    def whoever_catches_up_sees_what_who_opens_it_sees(self) -> None:
        fresh = open_view(self.store.load_window(NAME))
        for timeline in (*self.timelines, self.rival):
            timeline.events(after=fresh.version)  # whatever is done catches up
            engine = timeline._operations.engine
            assert engine._durable.state == fresh.state
            assert (engine.version, engine._durable.prepared) == (fresh.version, fresh.prepared)
            assert request_bytes(show(engine._durable, context())) == request_bytes(
                show(fresh, context())
            )

    @invariant()
    def a_follower_has_seen_all_of_it_once(self) -> None:
        self.seen += self.reader
        self.reader = self.opened().follow(after=len(self.seen), timeout=0)
        assert self.seen == self.log()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.problems() == []
            self.store.close()
            self.folder.cleanup()


@pytest.fixture(params=STORES)
def store_kind(request: pytest.FixtureRequest) -> pytest.FixtureRequest:
    """Names the kind of store that `new_store` makes."""
    return request


def test_whatever_is_interleaved_is_one_log(store_kind: pytest.FixtureRequest) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    def make(folder: Path) -> EventStore:
        return new_store(store_kind, folder)

    kind = type("Machine", (Interleaved,), {"make": staticmethod(make)})
    histories = HISTORIES.get(store_kind.param, FEW)
    run_state_machine_as_test(
        kind, settings=settings(max_examples=histories, stateful_step_count=STEPS, deadline=None)
    )
