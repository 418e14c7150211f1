"""How much a store takes at once: what is too large is refused whole, and the advice that comes with it is true.

That every store keeps to it is in `persistence.testing`; here is what would take each of them too long.
"""

from typing import Any

import pytest

from blocks import (
    BlockAppended,
    BlockId,
    EventId,
    TimelineId,
    TooLargeError,
    ToolResult,
    TurnId,
    UserPrompt,
    encode_event,
)
from persistence import EVENT_BYTES_MAX, ArtifactDescription, MemoryStore, Requester
from persistence._log import APPEND_BYTES_MAX, check_sizes, store_event
from persistence.testing._events import T, prompt
from timeline import Timeline


def prompt_of(bytes_: int) -> BlockAppended:
    """An event of exactly so many bytes of JSON."""
    empty = BlockAppended(
        id=EventId("e"), at=0.0, block=UserPrompt(id=BlockId("b"), turn=TurnId("t"), text="")
    )
    text = "x" * (bytes_ - len(encode_event(empty)))
    block = UserPrompt(id=BlockId("b"), turn=TurnId("t"), text=text)
    return BlockAppended(id=EventId("e"), at=0.0, block=block)


def test_the_limit_of_an_event_is_exact() -> None:
    store, largest = MemoryStore(), prompt_of(EVENT_BYTES_MAX)
    assert store.append(T, [largest], expected_version=0) == 1
    with pytest.raises(TooLargeError) as refused:
        store.append(T, [prompt_of(EVENT_BYTES_MAX + 1)], expected_version=1)
    assert (refused.value.size, refused.value.limit) == (EVENT_BYTES_MAX + 1, EVENT_BYTES_MAX)
    assert store.read(T) == [(1, largest)]


def test_events_that_are_too_large_together_are_refused() -> None:
    event = store_event(prompt_of(APPEND_BYTES_MAX // 8))
    check_sizes(T, [event] * 8, EVENT_BYTES_MAX)
    with pytest.raises(TooLargeError, match="in several calls"):
        check_sizes(T, [event] * 9, EVENT_BYTES_MAX)


def test_what_an_older_version_has_stored_is_copied_all_the_same() -> None:
    store, large = MemoryStore(), encode_event(prompt_of(EVENT_BYTES_MAX + 1))
    assert store.append_bytes(T, [large], expected_version=0) == 1


def test_the_advice_is_true() -> None:
    """What is too large for an event goes into an artifact, and its id into the log."""
    text = "x" * (EVENT_BYTES_MAX + 1)
    with Timeline.open("talk") as timeline:
        before = timeline.version
        with pytest.raises(TooLargeError, match=r"`artifacts.put` of the timeline"):
            timeline.user(text)
        assert timeline.version == before
        assert timeline.artifacts is not None
        about = ArtifactDescription(timeline=TimelineId("talk"))
        name = timeline.artifacts.put(text.encode(), about)
        timeline.user(f"It is {name}.")
        end = timeline.artifacts.read(name, Requester("me"), start=len(text) - 1)
        assert end == b"x"


def test_a_result_that_is_too_large_leaves_its_call_open() -> None:
    """So that the agent can answer it with less; nothing of the turn is lost."""
    with Timeline.open("talk") as timeline:
        timeline.user("Read it.")
        call: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
        timeline.record({"id": "m1", "role": "assistant", "content": [call]})
        with pytest.raises(TooLargeError, match=r"react\.tool\.result"):
            timeline.tool_result("c1", "x" * EVENT_BYTES_MAX)
        timeline.tool_result("c1", "too much", is_error=True)
        [result] = [
            e.block
            for _, e in timeline.events()
            if isinstance(e, BlockAppended) and isinstance(e.block, ToolResult)
        ]
        assert result.is_error


def test_all_names_of_an_append_count() -> None:
    event = prompt("x" * EVENT_BYTES_MAX)
    with pytest.raises(TooLargeError, match=r"'block x{80,100}"):
        MemoryStore().append(T, [event], expected_version=0)
