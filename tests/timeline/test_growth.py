"""Costs follow what is new: many times as much of anything takes that many times as long, not its square.

Each thing is done in two sizes, one eight times the other, and the ratio of the times is looked at: 8
is linear, 64 is quadratic.  No time by itself is.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from time import process_time
from typing import Any, Final

import msgspec
import pytest

from blocks import RangeCompacted, TextPart, encode_event
from tests._builders import events_of, open_timeline, response, text, tool_use
from tests._table import for_each
from timeline import Timeline

SMALL: Final = 300
TIMES: Final = 8
RATIO_MAX: Final = 26
TRIES: Final = 3
MB: Final = 1_000_000
PASSES_MAX: Final = 150
FILTERS: Final = 12_000
"""Characters of the filters of names and sources in a compaction; their sizes are fixed."""
PROSE: Final = "The quick brown fox jumps over the lazy dog, and goes home in the evening.\n"


def begun(**options: Any) -> Timeline:
    timeline = open_timeline(window=4_000_000, **options)
    timeline.user("go")
    return timeline


def sent(timeline: Timeline) -> None:
    rendered = timeline.render()
    assert rendered.violations == ()


def parallel_calls(number: int) -> None:
    timeline = begun()
    timeline.record(response(*(tool_use(f"c{n}") for n in range(number)), id="m"))
    sent(timeline)
    for n in range(number):
        timeline.tool_result(f"c{n}", f"result {n}")
    sent(timeline)
    timeline.compact()


def results_without_a_render(number: int) -> None:
    timeline = begun()
    timeline.record(response(*(tool_use(f"c{n}") for n in range(number)), id="m"))
    for n in range(number):
        timeline.tool_result(f"c{n}", "word " * 40)
    sent(timeline)
    timeline.record(response(text("ok"), id="m2"))
    timeline.compact()


def calls_of_one_id(number: int) -> None:
    timeline = begun()
    timeline.record(response(*(tool_use("same") for _ in range(number)), id="m"))
    for n in range(number):
        timeline.tool_result("same", f"result {n}")
    sent(timeline)
    timeline.compact()


def rounds(number: int) -> None:
    timeline = begun()
    for n in range(number):
        timeline.record(response(tool_use("same"), id=f"m{n}"))
        timeline.tool_result("same", f"result {n}")
    sent(timeline)
    timeline.compact()


def answers_without_an_id(number: int) -> None:
    timeline = begun()
    for n in range(number):
        timeline.record(response(text(f"answer {n}")))
    sent(timeline)


def notes(number: int) -> None:
    timeline = begun()
    for n in range(number):
        timeline.note(f"note {n}")
    sent(timeline)
    timeline.record(response(text("ok")))
    timeline.compact()


def prompts(number: int) -> None:
    timeline = begun()
    for n in range(number):
        timeline.user(f"prompt {n}: never touch file_{n}.py")
    sent(timeline)
    timeline.record(response(text("ok")))
    timeline.compact()


def hides(number: int) -> None:
    timeline = begun()
    timeline.record(response(*(tool_use(f"c{n}") for n in range(number)), id="m"))
    for n in range(number):
        timeline.tool_result(f"c{n}", f"result {n}")
    for n in range(number):
        timeline.hide(f"tc:t1.c{n}.result")
    sent(timeline)


def hides_of_folded_blocks(number: int) -> None:
    timeline = begun()
    calls = (tool_use(f"c{n}", "Bash", command=f"ls directory_{n}") for n in range(number))
    timeline.record(response(*calls, id="m"))
    for n in range(number):
        timeline.tool_result(f"c{n}", f"file_{n}.py has some more lines")
    for n in range(4):
        timeline.record(response(tool_use(f"d{n}"), id=f"m{n}"))
        timeline.tool_result(f"d{n}", "ok")
    timeline.compact()
    assert timeline.view.find("tc:t1.c0.result") is None, "it is folded"
    timeline.hide(*(f"tc:t1.c{n}.result" for n in range(number)))
    sent(timeline)


def notes_and_plans(number: int) -> None:
    timeline = begun()
    for n in range(number):
        timeline.note(f"note {n}")
        timeline.plan(f"plan {n}")
    sent(timeline)
    timeline.record(response(text("ok")))
    timeline.compact()


def lines_of_an_edited_file(number: int, line: str = "x = 1\n") -> None:
    """A file of few distinct lines is written, edited and read."""
    timeline, whole = open_timeline(window=30_000), line * (20 * number)
    timeline.user("go")
    half = {"old_string": whole[: len(whole) // 2], "new_string": whole[len(whole) // 3 :]}
    calls = [("Write", {"content": whole}, "ok"), ("Edit", half, "ok"), ("Read", {}, whole)]
    for name, arguments, result in [*calls, *[("Bash", {"command": "ls"}, "a word\n" * 600)] * 20]:
        call = tool_use(f"{name}{timeline.version}", name, path="x.py", **arguments)
        timeline.record(response(call, id=f"m{timeline.version}"))
        timeline.tool_result(call["id"], result)
    timeline.compact()


def calls_left_open(number: int) -> None:
    timeline = begun()
    timeline.record(response(*(tool_use(f"c{n}") for n in range(number)), id="m"))
    assert len(timeline.open_calls) == number
    assert len(timeline.close_calls()) == number
    sent(timeline)


def times(work: Callable[[], object]) -> Iterator[float]:
    """Of the processor, one a try."""
    for _ in range(TRIES):
        start = process_time()
        work()
        yield process_time() - start


def seconds(work: Callable[[], object]) -> float:
    """The least of all tries."""
    return min(times(work))


@for_each(
    "work",
    [
        parallel_calls,
        results_without_a_render,
        calls_of_one_id,
        rounds,
        answers_without_an_id,
        notes,
        notes_and_plans,
        lines_of_an_edited_file,
        prompts,
        hides,
        hides_of_folded_blocks,
        calls_left_open,
    ],
)
def test_many_times_as_many_take_that_many_times_as_long(work: Callable[[int], None]) -> None:
    work(SMALL)  # what is loaded at the first use is loaded now
    few = seconds(lambda: work(SMALL))
    assert any(many / few < RATIO_MAX for many in times(lambda: work(SMALL * TIMES)))


STRANGE: Final[dict[str, str]] = {
    "points": "1. a\n",
    "lists": "It fails because of x:\n\n- alpha beta.py\n- beta\n- gamma\n- delta\n\n",
    "rows": "| a | b |\n",
    "fences": "```\nx\n```\n\n",
    "sentences": "Found it. ",
    "errors": "Error: x\n",
    "quotes": "'a\"\n",
}
"""What a text may consist of."""


@pytest.mark.slow
@for_each("shape", STRANGE)
def test_the_page_of_a_strange_text_takes_as_long_as_the_text_is(shape: str) -> None:
    """As what the agent says, as a command, and as its result."""

    def work(number: int) -> None:
        strange = STRANGE[shape] * number
        timeline = open_timeline(window=6_000)
        timeline.user("go")
        for n, said in enumerate((strange, "and now?")):
            timeline.record(
                response(text(said), tool_use(f"c{n}", "Bash", command=strange), id=f"m{n}")
            )
            timeline.tool_result(f"c{n}", strange)
        timeline.compact()

    work(8 * SMALL)  # enough to be folded
    few = min(islice(times(lambda: work(8 * SMALL)), 2))
    assert any(many / few < RATIO_MAX for many in times(lambda: work(8 * SMALL * TIMES)))


# Sizes.


def call_with_its_own_id(timeline: Timeline, number: int) -> None:
    timeline.record(response(tool_use(f"c{number}", "Read", path=f"p{number}"), id=f"m{number}"))
    timeline.tool_result(f"c{number}", f"line {number}\n" * 20)


def call_with_an_id_of_before(timeline: Timeline, number: int) -> None:
    timeline.record(response(tool_use(f"c{number // 2}", "Read"), id=f"m{number}"))
    timeline.tool_result(f"c{number // 2}", f"line {number}\n" * 20)


def file_of_the_users(timeline: Timeline, number: int) -> None:
    timeline.attach(f"file{number}.py", TextPart(text=f"line {number}\n" * 20))
    timeline.record(response(text(f"answer {number}"), id=f"m{number}"))


@for_each("add", [call_with_its_own_id, call_with_an_id_of_before, file_of_the_users])
def test_what_a_compaction_stores_is_bounded_by_the_window_whatever_came_before(
    add: Callable[[Timeline, int], None],
) -> None:
    """Also in one turn without an end, of which each name is another."""
    window, rounds = 5_000, 1_600
    timeline = open_timeline(window=window)
    timeline.user("go")
    for number in range(rounds):
        add(timeline, number)
        if number % 20 == 0:
            timeline.render()
    sizes = [len(encode_event(event)) for event in events_of(timeline, RangeCompacted)]
    assert len(sizes) > 20
    assert max(sizes) < 6 * window + FILTERS


def oversized(add: Callable[[Timeline, str], object]) -> tuple[float, float]:
    """Times of a first and a second render with a text far beyond the window, as multiples of what it
    takes to write it as JSON and hash it."""
    huge = PROSE * (8 * MB // len(PROSE))
    bare = seconds(lambda: sha256(msgspec.json.encode({"text": huge})).digest())
    timeline = open_timeline(window=100_000)
    timeline.user("go")
    add(timeline, huge)
    start = process_time()
    first = timeline.render()
    middle = process_time()
    assert timeline.render().content_hash == first.content_hash
    end = process_time()
    assert first.cannot_fit is not None
    return (middle - start) / bare, (end - middle) / bare


ADDED: Final[dict[str, Callable[[Timeline, str], int]]] = {
    "prompt": Timeline.user,
    "steer": Timeline.steer,
    "note": Timeline.note,
    "plan": Timeline.plan,
    "answer": lambda timeline, huge: timeline.record(response(text(huge))),
    "call": lambda timeline, huge: timeline.record(response(tool_use("c", command=huge))),
}


@for_each("kind", ADDED)
def test_what_cannot_fit_costs_a_few_passes_over_it(kind: str) -> None:
    assert any(max(oversized(ADDED[kind])) < PASSES_MAX for _ in range(TRIES))
