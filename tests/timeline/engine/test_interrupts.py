"""An interrupt (Ctrl-C) at any moment: what was acknowledged is there, and the timeline agrees with its log."""

import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import timeline as package
from blocks import BlockAppended, text_of
from persistence.testing._concurrency import Interrupt, elsewhere
from render import show
from tests._builders import Clock, context, open_timeline, request_bytes, response, tool_use
from tests._sizes import PATIENCE, sized
from tests._table import for_each
from timeline import Timeline

HOME: Final = Path(package.__file__).parent.parent
CODE: Final = tuple(f"{HOME}/{name}/" for name in ("blocks", "persistence", "render", "timeline"))
SHELL: Final = (f"{HOME}/timeline/_flow_drivers.py", f"{HOME}/timeline/_timeline.py")
"""Where locks are taken and released."""
TRIES: Final = sized(20, 1000)
"""Moments that are tried of an operation, at equal distances: a compaction has tens of thousands."""


def filled(store: Any, clock: Clock) -> Timeline:
    timeline = open_timeline(store=store, clock=clock, window=3000)
    timeline.user("begin")
    for number in range(6):
        timeline.record(response(tool_use(f"c{number}"), id=f"m{number}"))
        timeline.tool_result(f"c{number}", f"result {number} " + "of some words " * 60)
    return timeline


def hidden(timeline: Timeline, name: str) -> int:
    return timeline.hide(timeline.view.entries[-1].path, replacement=name)


def acknowledged(timeline: Timeline, name: str) -> None:
    """Append a text; it is at its version, once."""
    version = timeline.steer(name)
    assert text_of(timeline.read(f"v{version}")).strip() == name


OPERATIONS: Final[dict[str, Callable[[Timeline, str], object]]] = {
    "user": lambda timeline, name: timeline.user(name),
    "record": lambda timeline, name: timeline.record(response(tool_use(name), id=name)),
    "hide": hidden,
    "render": lambda timeline, name: timeline.render(system=name),
    "compact": lambda timeline, name: timeline.compact(system=name),
    "read": lambda timeline, _: timeline.read("v2"),
    "snapshot": lambda timeline, _: timeline.snapshot(),
}


def assert_agrees(timeline: Timeline, store: Any, clock: Clock) -> None:
    """A timeline that is opened from the log shows the same."""
    timeline.flush()  # as every operation, it catches up first
    opened = open_timeline(store=store, clock=clock, window=3000)
    assert timeline.version == opened.version == store.head(timeline.id)
    assert timeline.view.state == opened.view.state
    shown = [request_bytes(show(each.view, context())) for each in (timeline, opened)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_acknowledged_is_there_and_the_timeline_agrees_with_its_log(
    store: Any, name: str
) -> None:
    clock = Clock()
    timeline = filled(store, clock)
    texts: list[str] = []
    never = Interrupt(10**9, CODE)
    with never.armed():
        OPERATIONS[name](timeline, "step")
    for moment in range(1, never.passed, never.passed // TRIES + 1):
        with Interrupt(moment, CODE).armed():
            OPERATIONS[name](timeline, f"step{moment}")
        texts.append(f"after {moment}")
        elsewhere(lambda: acknowledged(timeline, texts[-1]))
        assert_agrees(timeline, store, clock)
    log = [text_of(e.block).strip() for _, e in timeline.events() if isinstance(e, BlockAppended)]
    assert [text for text in log if text in set(texts)] == texts


@for_each("name", OPERATIONS)
def test_no_lock_is_left_taken_at_any_moment_of_the_shell(name: str) -> None:
    from persistence import MemoryStore

    store, clock = MemoryStore(), Clock()
    timeline = filled(store, clock)
    for moment in count(1):
        interrupt = Interrupt(moment, SHELL)
        with interrupt.armed():
            OPERATIONS[name](timeline, f"step{moment}")
        done = threading.Thread(target=timeline.flush, daemon=True)
        done.start()
        done.join(PATIENCE)
        assert not done.is_alive()
        if not interrupt.happened:
            break
