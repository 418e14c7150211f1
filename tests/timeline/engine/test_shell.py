"""Both shells are bound to one list of operations: the same names, parameters, words and types."""

import asyncio
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, assert_type

import msgspec
import pytest

from blocks import (
    AlreadyRecordedError,
    ArgumentError,
    Block,
    CallId,
    CodecError,
    DataError,
    HistoryDivergedError,
    MisuseError,
    ProviderPart,
    Recorded,
    TimelineExistsError,
    UnknownCallError,
    UnknownPathError,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence import Hit
from render import CompactionDraft, Rendered, View
from tests._builders import open_timeline, response, text, tool_use
from tests._table import for_each
from timeline import AsyncTimeline, Options, Timeline
from timeline._timeline import Snapshot
from timeline.engine._following import Follower
from timeline.engine._operations import Operations

NAMES = sorted(name for name in dir(Timeline) if not name.startswith("_"))
METHODS = [name for name in NAMES if callable(getattr(Timeline, name))]
OWN = {"open", "close", "for_model"}
"""Methods that are no operations: there is no timeline before the first, none after the second, and the third reads none."""
BOUND = [name for name in METHODS if name not in OWN]


def begun(**options: Any) -> Timeline:
    """A timeline that waits for the results of two calls."""
    timeline = open_timeline(**options)
    timeline.user("Look.")
    timeline.record(response(text("I look."), tool_use("call_1"), tool_use("call_2"), id="r1"))
    return timeline


# What they say of themselves.


def test_both_shells_offer_the_same() -> None:
    assert sorted(name for name in dir(AsyncTimeline) if not name.startswith("_")) == NAMES


def test_no_operation_is_left_out() -> None:
    operations = {n for n, _ in inspect.getmembers(Operations, inspect.isfunction) if n[0] != "_"}
    assert operations - {"open_calls"} == set(BOUND), "open_calls is a property"
    assert isinstance(inspect.getattr_static(Timeline, "open_calls"), property)


@for_each("kind", [Timeline, AsyncTimeline])
@for_each("name", METHODS)
def test_a_method_is_documented_where_it_is_asked_for(kind: type, name: str) -> None:
    method = getattr(kind, name)
    home = "Shell" if name == "for_model" else kind.__name__  # written once: it awaits nothing
    assert method.__qualname__ == f"{home}.{name}"
    assert method.__module__ == kind.__module__
    assert inspect.getdoc(method)
    # `async for` awaits the first, `async with` the second; the third reads nothing.
    is_awaited = kind is AsyncTimeline and name not in {"follow", "recording", "for_model"}
    assert inspect.iscoroutinefunction(method) is is_awaited


@for_each("name", METHODS)
def test_both_shells_take_and_say_the_same(name: str) -> None:
    method, amethod = getattr(Timeline, name), getattr(AsyncTimeline, name)
    signature, asignature = inspect.signature(method), inspect.signature(amethod)
    assert list(signature.parameters.values()) == list(asignature.parameters.values())
    assert inspect.getdoc(method) == inspect.getdoc(amethod)
    if name not in {
        "snapshot",
        "fork",
        "sibling",
        "for_model",
    }:  # of the one kind, and of the other
        assert signature.return_annotation == asignature.return_annotation


@for_each("name", BOUND)
def test_a_method_is_what_its_operation_is_but_for_the_flow(name: str) -> None:
    method, operation = getattr(Timeline, name), getattr(Operations, name)
    signature = inspect.signature(method)
    assert signature.parameters == inspect.signature(operation).parameters
    assert "Generator" not in str(signature)
    assert method.__annotations__["return"] == signature.return_annotation
    assert inspect.getdoc(method) == inspect.getdoc(operation)


def test_help_on_open_lists_every_option_with_its_meaning() -> None:
    doc = inspect.getdoc(Timeline.open) or ""
    arguments = doc.partition("Args:\n")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^    (\w+): (.+)", arguments, re.MULTILINE))
    assert list(told) == ["name", *Options.__annotations__]
    assert all(len(meaning.split()) > 2 for meaning in told.values())


# What a type checker says of a user's script: `make types` reads this, too.


def test_what_a_script_is_given() -> None:
    with Timeline.open("talk", counter="estimate") as timeline:
        assert_type(timeline, Timeline)
        assert_type(timeline.user("Look."), int)
        assert_type(timeline.record(response(tool_use("c")), rendered=None), int)
        assert_type(timeline.open_calls, tuple[CallId, ...])
        assert_type(timeline.tool_result("c", "done", is_error=False, envelope=None), int)
        assert_type(timeline.close_calls(), tuple[CallId, ...])
        assert_type(timeline.render(system="Be brief."), Rendered)
        assert_type(timeline.propose(), CompactionDraft)
        assert_type(timeline.upgrade_summary(), bool)
        assert_type(timeline.read("ar:t1.user.prompt"), Block)
        assert_type(timeline.search("Look", limit=3), Sequence[Hit])
        assert_type(timeline.events(after=1), Sequence[Recorded])
        assert_type(timeline.follow(after=1), Follower)
        assert_type(timeline.at(1), View)
        assert_type(timeline.snapshot(), Snapshot[Timeline])
        assert_type(timeline.fork("other"), Timeline)
        with pytest.raises(MisuseError):
            timeline.note(5)  # type: ignore[arg-type]
        with pytest.raises(MisuseError):
            timeline.search("Look", 3)  # type: ignore[call-arg]


def test_what_an_async_script_is_given() -> None:
    async def script() -> None:
        async with await AsyncTimeline.open("talk", counter="estimate") as timeline:
            assert_type(timeline, AsyncTimeline)
            asked = timeline.user("Look.")
            assert_type(await asked, int)
            assert_type(await timeline.note("Brief."), int)
            assert_type(await timeline.render(), Rendered)
            assert_type(await timeline.search("Look"), Sequence[Hit])
            assert_type(await timeline.fork("other"), AsyncTimeline)
            snapshot = await timeline.snapshot()
            assert_type(await snapshot.fork("part"), AsyncTimeline)
            with pytest.raises(MisuseError):
                await timeline.note(5)  # type: ignore[arg-type]

    asyncio.run(script())


# What they raise.

_Call = Callable[[Timeline], object]
FILE = {"type": "document", "source": {"type": "file", "file_id": "f"}}
EDITED = {"role": "user", "content": "Do not look."}
BROKEN = ProviderPart(value={**FILE, "odd": object()})


def _stale(timeline: Timeline) -> None:
    draft = timeline.propose()
    timeline.note("Meanwhile.")
    timeline.commit_draft(draft)


def _foreign(timeline: Timeline) -> None:
    timeline.commit_draft(msgspec.structs.replace(timeline.propose(), timeline="other"))


def _again(timeline: Timeline) -> None:
    timeline.tool_result("call_1", "ok")
    timeline.tool_result("call_1", "ok")


def _recorded_again(timeline: Timeline) -> None:
    for _ in range(2):
        timeline.record(response(text("Again."), id="r9"))


RAISES: dict[str, dict[type[Exception], _Call]] = {
    "append": {MisuseError: lambda t: t.append(), CodecError: lambda t: t.append(_unstorable())},
    "user": {MisuseError: lambda t: t.user(""), CodecError: lambda t: t.user("x", BROKEN)},
    "steer": {MisuseError: lambda t: t.steer("")},
    "followup": {MisuseError: lambda t: t.followup("")},
    "attach": {
        MisuseError: lambda t: t.attach("", BROKEN),
        CodecError: lambda t: t.attach("a.txt", BROKEN),
    },
    "record": {
        MisuseError: lambda t: t.record({}),
        AlreadyRecordedError: _recorded_again,
        CodecError: lambda t: t.record(response(tool_use("c", deep=_deep()))),
    },
    "tool_result": {
        MisuseError: lambda t: t.tool_result("call_1", 5),  # type: ignore[arg-type]
        UnknownCallError: lambda t: t.tool_result("call_9", "ok"),
        AlreadyRecordedError: _again,
        CodecError: lambda t: t.tool_result("call_1", [BROKEN]),
    },
    "notice": {MisuseError: lambda t: t.notice("")},
    "close_calls": {MisuseError: lambda t: t.close_calls("")},
    "calibrate": {MisuseError: lambda t: t.calibrate()},
    "learn": {MisuseError: lambda t: t.learn(5)},  # type: ignore[arg-type]
    "note": {MisuseError: lambda t: t.note("")},
    "plan": {MisuseError: lambda t: t.plan("")},
    "hide": {MisuseError: lambda t: t.hide(), UnknownPathError: lambda t: t.hide("ar:t9.x")},
    "restore": {
        MisuseError: lambda t: t.restore(),
        UnknownPathError: lambda t: t.restore("ar:t9.x"),
    },
    "render": {MisuseError: lambda t: t.render(system=5)},  # type: ignore[arg-type]
    "compact": {MisuseError: lambda t: t.compact(system=5)},  # type: ignore[arg-type]
    "upgrade_summary": {MisuseError: lambda t: t.upgrade_summary(system=5)},  # type: ignore[arg-type]
    "expand": {MisuseError: lambda t: t.expand()},
    "propose": {MisuseError: lambda t: t.propose(tools=5)},  # type: ignore[arg-type]
    "commit_draft": {
        MisuseError: lambda t: t.commit_draft(5),  # type: ignore[arg-type]
        VersionConflictError: _stale,
        DataError: _foreign,
    },
    "retain": {MisuseError: lambda t: t.retain("burn")},  # type: ignore[arg-type]
    "forget": {
        MisuseError: lambda t: t.forget("ar:t1.user.prompt", artifact="x"),
        UnknownPathError: lambda t: t.forget("ar:t9.x"),
    },
    "read": {MisuseError: lambda t: t.read(5), UnknownPathError: lambda t: t.read("ar:t9.x")},  # type: ignore[arg-type]
    "search": {MisuseError: lambda t: t.search("x", limit=0)},
    "events": {MisuseError: lambda t: t.events(after=-1)},
    "follow": {MisuseError: lambda t: t.follow(after=-1)},
    "at": {MisuseError: lambda t: t.at(99)},
    "render_at": {MisuseError: lambda t: t.render_at(99)},
    "recording": {ArgumentError: lambda t: t.recording("langchain")},
    "sync": {
        MisuseError: lambda t: t.sync([], format="anthropic", rendered=5),  # type: ignore[arg-type]  # what a script gives that nobody checks
        ArgumentError: lambda t: t.sync("x", format="openai.chat"),
        HistoryDivergedError: lambda t: t.sync([EDITED], format="openai.chat"),
        CodecError: lambda t: t.sync(
            [{**EDITED, "content": [{"x": 10**5000}]}], format="anthropic"
        ),
    },
    "sibling": {MisuseError: lambda t: t.sibling("")},
    "fork": {
        MisuseError: lambda t: t.fork(""),
        TimelineExistsError: lambda t: t.fork("talk"),
        UnknownTimelineError: lambda _: open_timeline().fork("other"),
    },
}
ELSEWHERE = {"VersionConflictError", "SummaryFailedError", "ForgottenError", "InvalidRequestError"}
"""Raised by races (`test_racing`), by summarisers (`summaries`) that fail, where events were removed
(`test_retention`, `test_forgetting`), and where each request is checked (`test_timeline`)."""


def _unstorable() -> Any:
    from tests import _builders as make

    return make.opaque("my.block", value=object())


def _deep() -> Any:
    found: dict[str, Any] = {}
    for _ in range(100_000):
        found = {"in": found}
    return found


@for_each("name", BOUND)
def test_an_operation_raises_what_it_says(name: str) -> None:
    doc = inspect.getdoc(getattr(Timeline, name)) or ""
    said = set(re.findall(r"^    (\w+Error):", doc.partition("Raises:\n")[2], re.MULTILINE))
    calls = RAISES.get(name, {})
    shown = {error.__name__ for error in calls}
    assert shown <= said
    assert said - shown <= ELSEWHERE
    for error, call in calls.items():
        with pytest.raises(error) as raised:
            call(begun())
        assert type(raised.value) is error or error is MisuseError
