"""What looks for patterns in texts takes time that grows with their length, whatever they spell."""

from collections.abc import Callable, Iterator
from itertools import count
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blocks import (
    BlockId,
    CallId,
    TextPart,
    ToolResult,
    TurnId,
    artifact_ids_in,
    inner_call,
    written_paths,
)
from persistence.search._index import is_needle
from render import overflow_of
from render.summary._calls import status_of
from render.summary._prose import identifiers
from render.view._view import quoted
from tests._table import for_each
from timeline import Timeline
from timeline.replay._recall import rare_names

CHARACTERS = 30_000
RATIO_MAX = 12
"""Of the time that as much prose takes. Measured: at most 2; a quadratic pattern has hundreds."""
PROSE = "Some say that src/app/main.py, line 12, has all the tests that ever passed; who knows. "
UNITS = (
    *("-", ".", "@", "+", "_", "a", "a-", "a.", "a@", "a.1", "A", "aB", "1", "1-", "f0", "語", "語a", "٣", "é"),
    *("/", "a/", "a//", "\\", "a:\\", "://", "http://", "a-a-://", "C:\\a@b", "abcdef-", "ab-cd-", " ", "\n", "\t"),
    *("[", "(", "{", "<", "< ", "</", "<a><b>", "<artifact ", "&", "&amp;", "&#60;", '"', "'", "``", "\0", "\ufeff"),
    *("*** Update File:", "*** Update File: a\n", "*** Update File: a  \n\n", "*** Move to: a" + " " * 500 + "b"),
    *("12345678-1234-1234-1234-", "12345678-1234-1234-1234-123456789012-", "art-0123456789abcdef", "art-"),
    *("maximum context length is 1 tokens ", "1 tokens > ", "do not ", "exit code ", "Never!", ". "),
    *("tools.x(a); ", "tools.x({a:", "const a = ", "`${", "\\x4", "session_id 1 "),
)  # fmt: skip
BEGINNINGS = ("a-", "*** Update File: a", "<")
PRINTED = "Script completed\nWall time 1 seconds\nOutput:\n"
NUMBERS = count()
EDGES = ("", "/x", "://x", "!", "< /")


def in_a_patch(text: str) -> object:
    return written_paths("apply_patch", {"input": text})


def in_an_error(text: str) -> object:
    return overflow_of(400, "", "maximum context length is " + text)


def in_a_program(text: str) -> object:
    return inner_call("exec", {"input": f"{next(NUMBERS)} tools.x({text}"})  # never from a cache


def in_a_printout(text: str) -> object:
    return status_of(
        ToolResult(
            id=BlockId("r"),
            turn=TurnId("t"),
            call_id=CallId("c"),
            parts=(TextPart(text=PRINTED + text),),
        )
    )


FINDERS: tuple[Callable[[str], object], ...] = (
    identifiers,
    rare_names,
    artifact_ids_in,
    in_a_patch,
    in_an_error,
    in_a_program,
    in_a_printout,
    is_needle,
    lambda text: quoted("artifact", text),
)


def times(find: Callable[[str], object], text: str) -> Iterator[float]:
    """Of the processor, in seconds: two tries."""
    for _ in range(2):
        began = process_time()
        find(text)
        yield process_time() - began


def assert_quick(text: str, prose: float) -> None:
    for find in FINDERS:
        assert any(seconds < RATIO_MAX * prose for seconds in times(find, text))


def full_of(unit: str, before: str = "", behind: str = "") -> str:
    return before + (unit * (CHARACTERS // len(unit) + 1))[:CHARACTERS] + behind


@pytest.fixture(scope="module")
def prose() -> float:
    """The time that the dearest finder takes for prose."""
    return max(min(times(find, full_of(PROSE))) for find in FINDERS)


@for_each("unit", UNITS, ids=ascii)
def test_known_bad_texts_cost_what_prose_costs(unit: str, prose: float) -> None:
    for edge in EDGES:
        assert_quick(full_of(unit, behind=edge), prose)
    for before in BEGINNINGS:
        assert_quick(full_of(unit, before, "b"), prose)


PIECES = st.one_of(st.sampled_from(UNITS), st.text("aA1f-._/:@\\ 語<&;\n", min_size=1, max_size=8))


@given(st.lists(PIECES, min_size=1, max_size=4).map("".join), PIECES, PIECES)
@example("a-語.@1/", "a", "://")
def test_any_mixture_costs_what_prose_costs(
    prose: float, unit: str, before: str, behind: str
) -> None:
    assert_quick(full_of(unit, before, behind), prose)


def compaction(text: str) -> float:
    """Of a timeline with a large result of this text."""
    with Timeline.open("t", window=30_000, counter="estimate") as timeline:
        timeline.user("Run the tests.")
        for number, said in enumerate([text, *["one two three " * 150] * 60]):
            call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {}}
            timeline.record({"id": f"m{number}", "content": [call]})
            timeline.tool_result(f"c{number}", said)
        began = process_time()
        timeline.render()
        timeline.compact()
        assert timeline.view.compaction is not None
        return process_time() - began


@for_each("unit", ["-", ".", "a-", "語", "@"])
def test_a_compaction_costs_the_same_whatever_a_tool_returned(unit: str) -> None:
    quickest = min(compaction(full_of(unit)) for _ in range(3))  # once garbage may be collected
    assert quickest < RATIO_MAX * compaction(full_of(PROSE))
