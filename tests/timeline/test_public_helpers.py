"""Whatever wrong type a function or a setting of the package gets: one error that says so, and nothing half done."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timeline
from blocks import FoldlineError, TimelineId
from persistence import MemoryStore
from tests._builders import LOOSE, Clock, open_timeline
from tests._table import for_each

STRANGE = object()
JUNK = [None, 5, -1, 2.5, b"x", "junk", ["a"], {"a": 1}, {1}, print, True, 1j, STRANGE]


class Client:
    """As much of a client as a summariser looks for before it calls it."""

    messages = None


def answer(_: object) -> str:
    return "done"


async def later(_: object) -> str:
    return "done"


@attrs.frozen
class Helper:
    """A public function: valid arguments, and the junk that is valid for one of them, too."""

    call: Callable[..., object]
    valid: dict[str, Any]
    fine: Mapping[str, tuple[object, ...]] = attrs.field(factory=dict[str, tuple[object, ...]])


def asynchronous(**arguments: Any) -> object:
    """`retry_with_compaction` in a loop of its own; the timeline is opened there."""

    async def run() -> object:
        async with await timeline.AsyncTimeline.open("talk", model=LOOSE, clock=Clock()) as opened:
            await opened.user("go")
            given = {"timeline": opened, **arguments}
            return await timeline.retry_with_compaction(**given)

    return asyncio.run(run())


SYSTEM = (None, "junk")
NUMBERS = (5, True)
PRICES = (5, 2.5)
RETRY: dict[str, tuple[object, ...]] = {"system": SYSTEM, "tools": (None,), "retries_max": (5,)}
STORE, TALK = MemoryStore(), TimelineId("talk")
HELPERS = {
    "retry_with_compaction": Helper(
        timeline.retry_with_compaction,
        {"timeline": open_timeline(store=STORE), "call": answer, "system": None, "tools": None, "retries_max": 1},
        {**RETRY, "call": (print,)},
    ),
    "retry_with_compaction, awaited": Helper(
        asynchronous, {"call": later, "system": None, "tools": None, "retries_max": 1}, RETRY
    ),
    "describe_model": Helper(
        timeline.describe_model,
        {"name": "m", "provider": "openai.chat", "tokens_window": 1_000, "price_input": 0, "price_output": 0},
        {"name": ("junk",), "tokens_window": (5,), "price_input": PRICES, "price_output": PRICES},
    ),
    "model_named": Helper(timeline.model_named, {"name": "gpt-5"}, {"name": ("junk",)}),
    "policy_named": Helper(timeline.policy_named, {"name": "default"}),
    "overflow_in": Helper(timeline.overflow_in, {"error": ValueError()}),
    "quality_of": Helper(timeline.quality_of, {"events": []}),
    "ModelSummarizer": Helper(
        timeline.ModelSummarizer,
        {"client": Client(), "model": "", "answer_tokens": None, "options": {}},
        {"model": ("junk",), "answer_tokens": (None, 5), "options": ({"a": 1},)},
    ),
    "Hooks": Helper(timeline.Hooks, {"on_before_compaction": [], "on_after_compaction": []}),
}  # fmt: skip
UNTOLD = {
    "tool": "tests/timeline/react/test_tools.py",
    **dict.fromkeys(("ReactAgent", "AsyncReactAgent"), "tests/timeline/react/test_misuse.py"),
    **dict.fromkeys(("Timeline", "AsyncTimeline"), "tests/timeline/test_misuse.py"),
    "Edit": "is checked where it is applied: tests/timeline/observe/test_hooks.py",
    "Policy": "tests/render/policy/test_policy.py",
    "ExtractiveSummarizer": "takes nothing",
    "SummaryFailedError": "an error",
    **dict.fromkeys(("Compacted", "Compacting", "Step", "SummaryRequest"), "is received"),
}
"""What is tested elsewhere, or is not for callers to make."""
CASES = [(name, parameter) for name, helper in HELPERS.items() for parameter in helper.valid]


def test_every_public_name_is_here() -> None:
    assert {name.partition(",")[0] for name in (*HELPERS, *UNTOLD)} == set(timeline.__all__)


@for_each("name", HELPERS)
def test_every_parameter_is_here(name: str) -> None:
    if name not in ("retry_with_compaction, awaited", "describe_model"):
        parameters = inspect.signature(HELPERS[name].call).parameters
        assert set(parameters) == set(HELPERS[name].valid)


@for_each(("name", "parameter"), CASES)
def test_a_wrong_type_is_one_typed_error(name: str, parameter: str) -> None:
    helper = HELPERS[name]
    for junk in JUNK:
        fine = helper.fine.get(parameter, ())
        if any(junk is each or (type(junk) is type(each) and junk == each) for each in fine):
            continue
        events = len(list(STORE.load_window(TALK).events)) if name.startswith("retry") else 0
        with pytest.raises((FoldlineError, TypeError)) as caught:
            helper.call(**{**helper.valid, parameter: junk})
        assert type(caught.value) is not AttributeError
        if name.startswith("retry"):
            assert len(list(STORE.load_window(TALK).events)) == events, "nothing half done"


@given(st.sampled_from(CASES), st.text() | st.binary() | st.lists(st.integers()) | st.floats())
def test_any_other_value_is_accepted_or_refused_by_a_typed_error(
    case: tuple[str, str], value: object
) -> None:
    helper = HELPERS[case[0]]
    if case[0] == "retry_with_compaction, awaited":
        return
    with suppress(FoldlineError, TypeError):
        helper.call(**{**helper.valid, case[1]: value})
