"""Who follows one `render()` through the code has a short trip: few files, seldom back and forth."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import pytest

import timeline as package
from tests._builders import open_timeline, response, text, tool_use
from timeline import Timeline

HOME = str(Path(package.__file__).parent.parent)
OURS = tuple(f"{HOME}/{name}/" for name in ("blocks", "persistence", "render", "timeline"))
TOOLS = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]


@attrs.define
class Trip:
    """The files of ours that are entered, in order, as `sys.setprofile` tells them; a file that is come
    back to by a return is not entered."""

    entered: list[str] = attrs.field(factory=list[str])
    _stack: list[str] = attrs.field(factory=list[str])

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in {"call", "return"} or not frame.f_code.co_filename.startswith(OURS):
            return
        if event == "return":
            self._stack.pop()
            return
        name = frame.f_code.co_filename.removeprefix(f"{HOME}/")
        if not self._stack or self._stack[-1] != name:
            self.entered.append(name)
        self._stack.append(name)


@pytest.fixture
def talk() -> Timeline:
    timeline = open_timeline(window=6000, validate=False)
    timeline.user("go")
    for number in range(6):
        rendered = timeline.render(system="You are.", tools=TOOLS)
        answer = response(text("x"), tool_use(f"c{number}", "look"), id=f"m{number}")
        timeline.record(answer, rendered=rendered)
        timeline.tool_result(f"c{number}", "some text of a result " * 20)
    return timeline


def trip_of(timeline: Timeline, name: str) -> list[str]:
    call = getattr(timeline, name)
    return entered_by(lambda: call(system="You are.", tools=TOOLS))


def entered_by(call: Callable[[], object]) -> list[str]:
    trip, before = Trip(), sys.getprofile()
    sys.setprofile(trip)
    try:
        call()
    finally:
        sys.setprofile(before)
    return trip.entered


def test_an_append_passes_through_few_files(talk: Timeline) -> None:
    assert len(files(entered_by(lambda: talk.user("And now?")))) <= 14
    rendered = talk.render(system="You are.", tools=TOOLS)
    answer = response(text("x"), tool_use("c9", "look"), id="m9")
    assert len(files(entered_by(lambda: talk.record(answer, rendered=rendered)))) <= 20


def files(entered: Sequence[str], package: str = "") -> list[str]:
    return sorted({name for name in entered if name.startswith(package)})


def test_a_render_in_which_nothing_happens_goes_straight_through(talk: Timeline) -> None:
    trip_of(talk, "render")
    entered = trip_of(talk, "render")
    assert len(files(entered)) <= 17, files(entered)
    assert len(entered) <= 64, entered
    assert len(files(entered, "timeline/")) <= 6, files(entered, "timeline/")


def test_a_request_with_news_adds_its_commit(talk: Timeline) -> None:
    entered = trip_of(talk, "render")
    assert len(files(entered)) <= 20, files(entered)
    assert len(entered) <= 118, entered
    assert len(files(entered, "timeline/")) <= 6, files(entered, "timeline/")


def test_a_compaction_adds_who_takes_part_in_it(talk: Timeline) -> None:
    entered = trip_of(talk, "compact")
    assert talk.view.compaction is not None
    assert len(files(entered)) <= 54, files(entered)
    assert len(files(entered, "timeline/")) <= 11, files(entered, "timeline/")
