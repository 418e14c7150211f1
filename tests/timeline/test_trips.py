"""Who follows one `render()` through the code has a short trip: few files, seldom back and forth."""

import subprocess
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


def told(**options: Any) -> Timeline:
    timeline = open_timeline(window=6000, validate=False, **options)
    timeline.user("go")
    for number in range(6):
        rendered = timeline.render(system="You are.", tools=TOOLS)
        answer = response(text("x"), tool_use(f"c{number}", "look"), id=f"m{number}")
        timeline.record(answer, rendered=rendered)
        timeline.tool_result(f"c{number}", "some text of a result " * 20)
    return timeline


@pytest.fixture
def talk() -> Timeline:
    return told()


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
    prompt, answer = appends(talk)
    assert len(files(prompt)) <= 12, files(prompt)
    assert len(files(answer)) <= 16, files(answer)


def test_an_append_in_a_file_adds_who_makes_it_durable(tmp_path: Path) -> None:
    with told(store=tmp_path / "talk.duckdb") as talk:
        prompt, answer = appends(talk)
    assert len(files(prompt)) <= 15, files(prompt)
    assert len(files(answer)) <= 19, files(answer)


def appends(talk: Timeline) -> tuple[list[str], list[str]]:
    """The trips of a prompt and of an answer."""
    prompt = entered_by(lambda: talk.user("And now?"))
    rendered = talk.render(system="You are.", tools=TOOLS)
    answer = response(text("x"), tool_use("c9", "look"), id="m9")
    return prompt, entered_by(lambda: talk.record(answer, rendered=rendered))


def files(entered: Sequence[str], package: str = "") -> list[str]:
    return sorted({name for name in entered if name.startswith(package)})


def test_a_render_in_which_nothing_happens_goes_straight_through(talk: Timeline) -> None:
    trip_of(talk, "render")
    entered = trip_of(talk, "render")
    assert len(files(entered)) <= 14, files(entered)
    assert len(entered) <= 40, entered
    assert len(files(entered, "timeline/")) <= 5, files(entered, "timeline/")


def test_a_request_with_news_adds_its_commit(talk: Timeline) -> None:
    entered = trip_of(talk, "render")
    assert len(files(entered)) <= 18, files(entered)
    assert len(entered) <= 76, entered
    assert len(files(entered, "timeline/")) <= 5, files(entered, "timeline/")


def test_a_compaction_adds_who_takes_part_in_it(talk: Timeline) -> None:
    trip_of(told(), "compact")  # the first one loads its modules, which is no part of the trip
    entered = trip_of(talk, "compact")
    assert talk.view.compaction is not None
    assert len(files(entered)) <= 38, files(entered)
    assert len(files(entered, "timeline/")) <= 8, files(entered, "timeline/")


def test_a_first_append_and_a_first_render_load_neither_compaction_nor_other_providers() -> None:
    code = (
        "import sys; from timeline import Timeline; talk = Timeline.open('talk', counter='estimate');"
        " talk.user('go'); talk.render(); print(*sys.modules)"
    )
    ours = {name for name in run_python(code).split() if name.startswith("render.")}
    assert {"render.providers.anthropic", "render.stages._budget"} <= ours
    late = (
        "render.compaction._l",
        "render.summary._a",
        "render.providers.gemini",
        "render.providers.o",
    )
    assert not [name for name in ours if name.startswith(late)]


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
