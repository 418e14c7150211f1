"""Tools: what the model is told about a function, and what becomes of what it sends."""

import asyncio
import enum
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from blocks import (
    BlockId,
    CallId,
    Determinism,
    Envelope,
    MisuseError,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
)
from blocks.formats import Format
from tests._practice import Practice
from tests._table import for_each
from timeline import Timeline, tool
from timeline.fake_provider import Call, Reply
from timeline.react import AgentSettings, Tool, ToolReply, file_state
from timeline.react._approvals import open_calls
from timeline.react._events import ToolDone
from timeline.react._tools import RESULT_BYTES_MAX, Caller

from .both import Agents
from .desk import EVERYWHERE, Desk


class Point(msgspec.Struct):
    x: int
    y: int = 0


@tool(durability="ephemeral")
def draw(
    at: Point,
    color: Literal["red", "blue"] = "red",
    label: Annotated[str, "Written next to it."] = "",
    tags: list[str] | None = None,
    *,
    width: float = 1.0,
) -> str:
    """Draw a point.

    It cannot be undone.

    Args:
        at: Where,
            in pixels.
        width (float): How wide: a number.

    Returns:
        What was drawn.
    """
    return f"{at.x},{at.y} {color} {label!r} {tags} {width}"


def called(function: Tool | Callable[..., Any], **given: Any) -> ToolDone:
    made = function if isinstance(function, Tool) else tool(function)
    clock = iter((1.0, 3.0))
    caller = Caller(tools={made.name: made}, clock=lambda: next(clock))
    return result_of(caller, call_of(made.name, given))


def result_of(caller: Caller, call: ToolCall) -> ToolDone:
    done = caller.call(call)
    assert isinstance(done, ToolDone)
    return done


def call_of(name: str, given: dict[str, Any]) -> ToolCall:
    block, turn = BlockId("b"), TurnId("t1")
    return ToolCall(id=block, turn=turn, call_id=CallId("c"), name=name, input=given)


def test_the_schema_comes_from_the_annotations_and_the_texts_from_the_docstring() -> None:
    definition = draw.definition
    assert definition["name"] == "draw"
    assert definition["description"].startswith("Draw a point.\n\nIt cannot be undone.")
    assert "pixels" not in definition["description"]
    schema = definition["input_schema"]
    assert schema["type"] == "object"
    assert schema["required"] == ["at"]
    assert schema["additionalProperties"] is False
    fields = schema["properties"]
    assert "Where, in pixels." in str(fields["at"])
    assert fields["color"] == {"enum": ["blue", "red"], "default": "red"}
    assert fields["label"] == {
        "type": "string",
        "description": "Written next to it.",
        "default": "",
    }
    assert fields["width"]["description"] == "How wide: a number."
    assert schema["$defs"]["Point"]["properties"]["x"] == {"type": "integer"}


def test_a_tool_is_still_a_function() -> None:
    assert draw(Point(1)).startswith("1,0 red")


def test_input_becomes_the_types_that_the_function_wants() -> None:
    done = called(draw, at={"x": "7"}, tags=["a"], width="2")
    assert done.output == "7,0 red '' ['a'] 2.0"
    assert not done.is_error


@for_each(
    ("given", "said"),
    [
        ({}, "missing required field `at`"),
        ({"at": {"x": "seven"}}, "Expected `int`, got `str` - at `$.at.x`"),
        ({"at": {"x": 1}, "hue": 1}, "unknown field `hue`"),
    ],
)
def test_invalid_input_is_told_to_the_model(given: dict[str, Any], said: str) -> None:
    done = called(draw, **given)
    assert done.is_error
    assert str(done.output).startswith("invalid input for draw: ")
    assert said in str(done.output)


BROKEN = '{"input": "rm -rf build'
"""Arguments that break off; the tool has a parameter of the name under which the log keeps them."""
FUNCTION = {"name": "shell", "arguments": BROKEN}
CHAT_CALL = {"message": {"tool_calls": [{"id": "c", "type": "function", "function": FUNCTION}]}}
UNREAD: dict[Format, Any] = {
    "openai.chat": {"id": "r", "choices": [CHAT_CALL]},
    "openai.responses": {
        "id": "r",
        "output": [{"type": "function_call", "id": "f", "call_id": "c", **FUNCTION}],
    },
    "anthropic": {
        "id": "r",
        "content": [{"type": "tool_use", "id": "c", "name": "shell", "input": BROKEN}],
    },
}


@for_each("name", UNREAD)
def test_a_call_whose_arguments_are_no_json_object_is_neither_made_nor_approved(
    name: Format,
) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def shell(input: str) -> None:  # noqa: A002 -- as models call it
        ran.append(input)

    timeline = Timeline.open("t")
    timeline.user("Clean up.")
    timeline.record(UNREAD[name], format=name)
    [call] = open_calls(timeline.view)
    done = result_of(Caller(tools={"shell": shell}, clock=lambda: 0.0), call)
    assert (shell.must_ask(call), done.is_error, ran) == (False, True, [])
    assert 'the arguments are not a JSON object: \'{"input": "rm -rf build\'' in str(done.output)
    edited = msgspec.structs.replace(call, input={"input": "ls"})
    assert shell.must_ask(edited), "as a person may have written it"


def test_an_unknown_tool_is_told_to_the_model() -> None:
    caller = Caller(tools={"draw": draw}, clock=lambda: 0.0)
    done = result_of(caller, call_of("paint", {}))
    assert (done.output, done.is_error) == ("there is no tool 'paint'; there are: draw", True)


def test_what_a_tool_raises_is_told_without_a_traceback() -> None:
    def divide(a: int, b: int) -> float:
        return a / b

    done = called(divide, a=1, b=0)
    assert (done.output, done.is_error) == ("ZeroDivisionError: division by zero", True)
    assert done.envelope.outcome == "failure"


def test_an_error_that_cannot_say_what_it_is_is_told_by_its_name() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail() -> None:
        raise SilentError

    done = called(fail)
    assert (done.output, done.is_error) == ("SilentError", True)


def test_an_async_tool_runs_for_a_sync_agent_too() -> None:
    async def wait(seconds: float) -> str:
        return f"waited {seconds}"

    assert called(wait, seconds=0).output == "waited 0.0"


@for_each(
    ("returned", "output"),
    [
        ("text", "text"),
        (None, ""),
        ({"rows": [1, 2]}, '{"rows":[1,2]}'),
        ([{"type": "text"}], '[{"type":"text"}]'),
        (TextPart(text="a"), [TextPart(text="a")]),
        ([TextPart(text="a"), TextPart(text="b")], [TextPart(text="a"), TextPart(text="b")]),
        (object, "\"<class 'object'>\""),
    ],
)
def test_results_are_texts_parts_or_json(returned: object, output: object) -> None:
    def give() -> Any:
        return returned

    done = called(give)
    assert not done.is_error
    assert done.output == output


def test_the_envelope_says_how_durable_the_result_is_and_when_it_was_made() -> None:
    envelope = called(draw, at={"x": 1}).envelope
    assert (envelope.durability, envelope.started_at, envelope.ended_at) == ("ephemeral", 1.0, 3.0)

    def test(suite: str) -> ToolReply:
        """Run tests."""
        return ToolReply(output=f"{suite} failed", is_error=True, key_fields={"exit": 1})

    done = called(test, suite="unit")
    assert (done.is_error, done.envelope.outcome, done.envelope.key_fields) == (
        True,
        "failure",
        {"exit": 1},
    )


def test_a_function_that_is_no_tool_is_refused_at_once() -> None:
    def many(*paths: str) -> None: ...
    def odd(callback: Callable[[], None]) -> None: ...

    with pytest.raises(MisuseError, match="tool many: parameter paths cannot be given by name"):
        tool(many)
    with pytest.raises(MisuseError, match="tool odd"):
        tool(odd)
    with pytest.raises(MisuseError, match="not 'no good'"):
        tool(name="no good")(draw.call)


# What tools declare about their results ends in the envelopes, whichever agent runs them.


class Order(msgspec.Struct):
    id: int
    lines: list[str]


def both(made: Tool, **given: Any) -> list[ToolDone]:
    """A call as the sync and as the async agent do it."""
    caller = Caller(tools={made.name: made}, clock=lambda: 1.0)
    asked = call_of(made.name, given)
    done = [caller.call(asked), asyncio.run(caller.acall(asked))]
    return [each for each in done if isinstance(each, ToolDone)]


def both_now(made: Tool, **given: Any) -> list[Determinism | None]:
    caller = Caller(tools={made.name: made}, clock=lambda: 1.0)
    asked = call_of(made.name, given)
    done = asyncio.run(caller.acall(asked))
    assert isinstance(done, ToolDone)
    return [caller.current(asked), done.envelope.determinism]


def test_an_output_that_no_store_takes_is_told_to_the_model() -> None:
    """So the turn goes on, and the model can ask for less."""

    @tool(preserve=["all"])
    def read(much: int) -> dict[str, str]:
        """Both the output and what is preserved of it count."""
        return {"all": "x" * much}

    for done in both(read, much=RESULT_BYTES_MAX // 2):
        assert done.is_error
        assert done.envelope.key_fields == {}
        assert isinstance(done.output, str)
        assert "TooLargeError: the output has" in done.output
        assert "return less" in done.output
    for done in both(read, much=1_000):
        assert not done.is_error


# A run.


def test_what_a_tool_declares_is_in_the_log(practice: Practice, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")

    @tool(durability="replayable", capture=file_state)
    def read(path: str, lines: int = 10) -> str:
        return Path(path).read_text(encoding="utf-8")[:lines]

    @tool(preserve=["id", "customer.name"], sensitivity="confidential")
    def create_order() -> dict[str, Any]:
        return {"id": 7, "customer": {"name": "Ada", "street": "x"}, "lines": ["a"]}

    calls = [Call("read", {"path": str(file)}), Call("create_order")]
    script = [Reply(text="I do.", calls=calls), Reply(text="Done.")]
    for ran in Agents(practice).run(script, tools=[read, create_order], clock=lambda: 5.0):
        names = {block.call_id: block.name for block in ran.blocks(ToolCall)}
        envelopes = {names[r.call_id]: r.envelope for r in ran.blocks(ToolResult)}
        assert envelopes["read"] == Envelope(
            durability="replayable",
            determinism=Determinism(
                content_hash=sha256(b"text").hexdigest()[:16], mtime=file.stat().st_mtime
            ),
            started_at=5.0,
            ended_at=5.0,
        )
        assert envelopes["create_order"] == Envelope(
            key_fields={"id": 7, "customer.name": "Ada"},
            sensitivity="confidential",
            started_at=5.0,
            ended_at=5.0,
        )


def test_the_probe_of_an_agent_sees_that_a_file_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")

    @tool(durability="replayable", capture=file_state)
    def read(path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def plain() -> str:
        return ""

    probe = AgentSettings(tools=[read, plain]).probe
    asked = call_of("read", {"path": str(file)})
    then, now = both(read, path=str(file))[0].envelope.determinism, probe(asked)
    assert now is not None
    assert not then.has_changed(now)
    os.utime(file, (1.0, 1.0))
    touched = probe(asked)
    assert touched is not None
    assert not then.has_changed(touched), "the content decides"
    file.write_text("other", encoding="utf-8")
    changed = probe(asked)
    assert changed is not None
    assert then.has_changed(changed)
    file.unlink()
    assert probe(asked) == Determinism(), "no mark at all: changed"
    assert probe(call_of("read", {"file": "x"})) == Determinism()
    assert probe(call_of("plain", {})) is None
    assert probe(call_of("unknown", {})) is None


# Captures.


def test_the_source_is_looked_at_before_it_is_read() -> None:
    """Else a change in between would make a stale result pass for a fresh one."""
    seen: list[str] = []

    def look(at: str) -> Determinism:
        seen.append(f"look at {at}")
        return Determinism(version="1")

    @tool(capture=look)
    def read(at: str) -> str:
        seen.append(f"read {at}")
        return ""

    assert [done.envelope.determinism.version for done in both(read, at="x")] == ["1", "1"]
    assert seen == ["look at x", "read x"] * 2


def test_captures_may_be_async() -> None:
    async def look(at: str) -> Determinism:
        await asyncio.sleep(0)  # others have their turn
        return Determinism(etag=at)

    @tool(capture=look)
    def fetch(at: str) -> str:
        return at

    assert [done.envelope.determinism.etag for done in both(fetch, at="x")] == ["x", "x"]
    assert both_now(fetch, at="y") == [Determinism(etag="y")] * 2


def broken(path: str) -> Determinism:
    raise PermissionError(path)


async def abroken(path: str) -> Determinism:
    raise PermissionError(path)


def silent(path: str) -> None:
    assert path


async def acancelled(path: str) -> Determinism:
    raise asyncio.CancelledError(path)


def test_a_tool_that_cancels_itself_has_failed_and_nothing_else_is_cancelled() -> None:
    async def waits(path: str) -> str:
        raise asyncio.CancelledError(path)

    for done in both(tool(waits), path="x"):
        assert (done.output, done.is_error) == ("CancelledError: x", True)


@pytest.mark.parametrize("capture", [broken, abroken, acancelled, silent, file_state])
def test_a_capture_that_fails_breaks_nothing_and_counts_as_changed(
    capture: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    @tool(durability="replayable", capture=capture)
    def read(path: str) -> str:
        return f"text of {path}"

    with caplog.at_level(logging.WARNING, "foldline"):
        for done in both(read, path="/nowhere/at/all"):
            assert (done.output, done.is_error) == ("text of /nowhere/at/all", False)
            assert done.envelope.determinism == Determinism()
    assert caplog.text.count("the capture of tool read failed") == 2
    assert both_now(read, path="/nowhere/at/all") == [Determinism()] * 2


def test_a_capture_gets_the_arguments_that_it_has_parameters_for() -> None:
    def everything(**given: object) -> Determinism:
        return Determinism(version=",".join(f"{k}={v}" for k, v in given.items()))

    def one(*, lines: int) -> Determinism:
        return Determinism(version=str(lines))

    def read(path: str, lines: int = 10) -> str:
        return path * lines

    for capture, seen in ((everything, "path=a,lines=10"), (one, "10")):
        made = tool(capture=capture)(read)
        assert both_now(made, path="a") == [Determinism(version=seen)] * 2


def test_a_capture_that_needs_what_the_tool_is_not_given_is_refused_at_once() -> None:
    def read(file: str) -> str:
        return file

    with pytest.raises(MisuseError, match=r"tool read: its capture needs path, .* \(file\)"):
        tool(capture=file_state)(read)


def test_what_failed_has_no_mark() -> None:
    @tool(capture=lambda: Determinism(version="1"))
    def read() -> str:
        raise OSError

    for done in both(read):
        assert (done.envelope.outcome, done.envelope.determinism) == ("failure", Determinism())


def test_what_a_reply_says_goes_before_what_was_declared() -> None:
    marked = Determinism(version="2")

    @tool(preserve=["id", "n"], sensitivity="public", capture=lambda: Determinism(version="1"))
    def read() -> ToolReply:
        return ToolReply(
            output='{"id": 1, "n": 2}',
            key_fields={"id": "one"},
            determinism=marked,
            outcome="partial",
            sensitivity="restricted",
        )

    for done in both(read):
        envelope = done.envelope
        assert envelope.key_fields == {"id": "one", "n": 2}
        assert (envelope.outcome, envelope.sensitivity) == ("partial", "restricted")
        assert envelope.determinism == marked
        assert not done.is_error


def test_a_reply_without_a_mark_leaves_it_to_the_capture() -> None:
    made = tool(name="read", capture=lambda: Determinism(version="1"))(
        lambda: ToolReply(output="text")
    )
    assert [done.envelope.determinism.version for done in both(made)] == ["1", "1"]


# Fields.


@for_each(
    ("returned", "kept"),
    [
        ({"id": 7, "lines": ["a"]}, {"id": 7, "lines.0": "a"}),
        (Order(id=7, lines=["a", "b"]), {"id": 7, "lines.0": "a"}),
        ('{"id": 7}', {"id": 7}),
        (TextPart(text='{"id": 7}'), {"id": 7}),
        (ToolReply(output='{"id": 7}', is_error=True), {"id": 7}),
        ("Order 7", {}),
        (None, {}),
        ([1, 2], {}),
    ],
    ids=str,
)
def test_the_fields_to_preserve_are_taken_from_replies_with_json(
    returned: object, kept: dict[str, Any]
) -> None:
    made = tool(name="order", preserve=["id", "lines.0"])(lambda: returned)
    assert [done.envelope.key_fields for done in both(made)] == [kept, kept]


@for_each("durability", ["ephemeral", "anchoring", "replayable", "non-replayable"])
def test_every_durability_can_be_declared(durability: Any) -> None:
    made = tool(name="do", durability=durability)(lambda: "done")
    assert [done.envelope.durability for done in both(made)] == [durability] * 2


def test_kind_and_target_reach_the_log() -> None:
    """A summary made from a reopened log lists the call as the live one does."""

    def book(order: int) -> str:
        return f"booked {order}"

    def broken(order: int) -> str:
        raise OSError(order)

    for function in (book, broken):
        made = tool(name="book", kind="write", target="order")(function)
        for done in both(made, order=7):
            assert (done.envelope.kind, done.envelope.target) == ("write", "order")
    for done in both(tool(book), order=7):
        assert (done.envelope.kind, done.envelope.target) == (None, "")


def test_a_target_must_be_a_parameter() -> None:
    def book(order: int) -> int:
        return order

    with pytest.raises(
        MisuseError, match=r"tool book: its target 'id' is not a parameter of the tool"
    ):
        tool(target="id")(book)


@for_each(
    "declared",
    [
        {"durability": "forever"},
        {"sensitivity": "secret"},
        {"preserved": ["id"]},
        {"check": dict},
        {"kind": "reads"},
    ],
    ids=str,
)
def test_what_cannot_be_declared_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        tool(**declared)(lambda: "")


def test_one_field_need_not_be_a_list() -> None:
    assert tool(name="order", preserve="id")(lambda: "").preserve == ("id",)


# Parameters of every kind of type: the schema is the type's own, what arrives is converted, and what is wrong is
# told.


class Item(BaseModel):
    name: str = Field(description="Its name.")
    count: int = Field(ge=1)


class ItemOrder(BaseModel):
    items: list[Item]
    mode: Literal["fast", "cheap"] = "cheap"


class Strict(BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    day: date


@dataclass
class Place:
    street: str
    number: int = 1


@dataclass
class Sized:
    size: Annotated[int, Field(le=9)]


@pydantic_dataclass
class Checked:
    size: int = Field(ge=3)


class Words(TypedDict, total=False):
    first: str
    rest: list[str]


class Pair(NamedTuple):
    left: int
    right: int


@attrs.frozen
class Frozen:
    x: int


class Tree(msgspec.Struct):
    value: int
    branches: "list[Tree]" = []


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def taking(kind: Any) -> Callable[..., Any]:
    """A function with one parameter `x` of this type; it returns what it gets."""

    def take(x: Any) -> Any:
        return x

    take.__annotations__["x"] = kind
    return take


def read(kind: Any, value: Any) -> Any:
    made = tool(taking(kind))
    return made.call(**made.check({"x": value}))


GOOD: list[tuple[Any, Any, Any]] = [
    (
        ItemOrder,
        {"items": [{"name": "a", "count": 2}]},
        ItemOrder(items=[Item(name="a", count=2)]),
    ),
    (list[Item], [{"name": "a", "count": "2"}], [Item(name="a", count=2)]),
    (Item | None, None, None),
    (dict[str, Item], {"k": {"name": "a", "count": 1}}, {"k": Item(name="a", count=1)}),
    (Strict, {"day": "2026-01-02"}, Strict(day=date(2026, 1, 2))),
    (Annotated[int, Field(ge=1)], 1, 1),
    (Annotated[int, msgspec.Meta(ge=1)], "1", 1),
    (Place, {"street": "a"}, Place("a")),
    (Sized, {"size": 9}, Sized(9)),
    (Checked, {"size": 3}, Checked(3)),
    (Words, {"rest": ["a"]}, {"rest": ["a"]}),
    (Pair, [1, 2], Pair(1, 2)),
    (Frozen, {"x": 1}, Frozen(1)),
    (Tree, {"value": 1, "branches": [{"value": 2}]}, Tree(1, [Tree(2)])),
    (Color, "red", Color.RED),
    (Literal["a", 1], 1, 1),
    (int | str, "7", "7"),
    (list[list[int]], [[1], []], [[1], []]),
    (date, "2026-01-02", date(2026, 1, 2)),
    (Path, "/a", Path("/a")),
    (list[Path] | None, ["a"], [Path("a")]),
]


@for_each(("kind", "value", "wanted"), GOOD, ids=[str(kind) for kind, *_ in GOOD])
def test_what_the_model_sends_becomes_what_the_function_wants(
    kind: Any, value: Any, wanted: Any
) -> None:
    made = read(kind, value)
    assert made == wanted
    assert type(made) is type(wanted)


BAD: list[tuple[Any, Any, str]] = [
    (
        ItemOrder,
        {"items": [{"name": "a", "count": 0}]},
        "greater than or equal to 1 - at `$.x.items.0.count`",
    ),
    (ItemOrder, {"items": [], "mode": "slow"}, "'fast' or 'cheap' - at `$.x.mode`"),
    (list[Item], [{}], "Field required - at `$.x.0.name`; Field required - at `$.x.0.count`"),
    (Annotated[int, Field(ge=1)], 0, "greater than or equal to 1 - at `$.x`"),
    (Annotated[int, msgspec.Meta(ge=1)], 0, "Expected `int` >= 1 - at `$.x`"),
    (Place, {"number": 1}, "missing required field `street` - at `$.x`"),
    (Sized, {"size": 10}, "less than or equal to 9 - at `$.x.size`"),
    (Checked, {"size": 1}, "greater than or equal to 3 - at `$.x.size`"),
    (Words, {"rest": "a"}, "Expected `array`, got `str` - at `$.x.rest`"),
    (Color, "green", "Invalid enum value 'green' - at `$.x`"),
    (int | None, "seven", "Expected `int | null`, got `str` - at `$.x`"),
]


@for_each(("kind", "value", "said"), BAD, ids=[str(kind) for kind, *_ in BAD])
def test_what_is_wrong_is_told_with_its_place(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"\$") as raised:
        read(kind, value)
    assert said in str(raised.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    def order(item: Item, place: Place, count: Annotated[int, Field(ge=1)]) -> None: ...

    with pytest.raises(ValueError, match="street") as raised:
        tool(order).check({"item": {"name": 1, "count": 0}, "place": {}})
    for said in ("$.item.name", "$.item.count", "field `count`", "`$.place`"):
        assert said in str(raised.value)


def test_the_schema_is_the_one_that_pydantic_makes() -> None:
    schema = tool(taking(ItemOrder)).input_schema
    wanted = TypeAdapter(ItemOrder).json_schema(ref_template="#/$defs/{model}")
    assert schema["$defs"]["Item"] == wanted["$defs"]["Item"]
    assert schema["$defs"]["ItemOrder"]["properties"] == wanted["properties"]
    assert schema["properties"]["x"] == {"$ref": "#/$defs/ItemOrder"}
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == (
        "object",
        ["x"],
        False,
    )


def test_descriptions_and_defaults_of_fields_are_shown() -> None:
    def take(
        count: int = Field(3, ge=1, description="How many."),
        size: Annotated[int, Field(le=9, description="How big.")] = 2,
        place: Place = Place("a"),  # noqa: B008
        note: str = None,  # type: ignore[assignment]  # noqa: RUF013 -- as people write it
    ) -> Any:
        """Take.

        Args:
            place: Where.
        """
        return count, size, place, note

    made = tool(take)
    shown = made.input_schema["properties"]
    assert shown["count"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many.",
        "default": 3,
    }
    assert shown["size"]["description"] == "How big."
    assert shown["place"] == {"$ref": "#/$defs/Place", "description": "Where."}
    assert made.call(**made.check({})) == (3, 2, Place("a"), None)
    assert made.call(**made.check({"note": None})) == (3, 2, Place("a"), None)


def needs_callable(x: Callable[[], None]) -> None: ...
def needs_object(x: object) -> None: ...
def needs_unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821 -- a mistake that is refused, as below
def wrong_default(x: int = "y") -> None: ...  # type: ignore[assignment]  # refused
def wrong_field(x: int = Field("y", ge=1)) -> None: ...  # type: ignore[assignment]  # refused
def two_shapes(x: Place | Frozen) -> None: ...
def everything(*x: int) -> None: ...


class Odd(TypedDict):
    size: Annotated[object, Field()]


@for_each(
    ("function", "said"),
    [
        (needs_callable, "'Callable' has no JSON form; take a dataclass"),
        (needs_object, "'object' has no JSON form"),
        (needs_unknown, "name 'Nowhere' is not defined"),
        (wrong_default, "default of parameter x: Expected `int`, got `str`"),
        (wrong_field, "valid integer"),
        (two_shapes, "may not contain more than one"),
        (everything, "cannot be given by name"),
    ],
)
def test_a_wrong_definition_is_refused_when_it_is_made(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(MisuseError, match=f"^tool {function.__name__}: ") as raised:
        tool(function)
    assert said in str(raised.value)


def test_two_types_of_one_name_are_not_mixed_up() -> None:
    class Item(msgspec.Struct):
        other: int

    def order(mine: Item, yours: list[ItemOrder]) -> None: ...

    order.__annotations__["mine"] = Item
    with pytest.raises(MisuseError, match="two different types have the name Item"):
        tool(order)


@EVERYWHERE
def test_typed_arguments_arrive_and_violations_go_back(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    """At every provider: the model corrects what was refused."""
    orders: list[tuple[ItemOrder, Place, Color]] = []

    def order(order: ItemOrder, place: Place, color: Color = Color.RED) -> str:
        """Order something."""
        orders.append((order, place, color))
        return "ordered"

    def call(count: int) -> Call:
        items = [{"name": "pear", "count": count}]
        return Call("order", {"order": {"items": items}, "place": {"street": "a"}, "color": "blue"})

    script = [Reply(text="I order.", calls=[call(0)]), Reply(calls=[call(2)]), Reply(text="Done.")]
    desk = Desk.at(practice, (provider, is_async), script, tools=[order])
    assert desk.run().text == "Done."
    assert orders == [(ItemOrder(items=[Item(name="pear", count=2)]), Place("a"), Color.BLUE)]
    refused, done = desk.blocks(ToolResult)
    assert (refused.is_error, done.is_error) == (True, False)
    assert "greater than or equal to 1 - at `$.order.items.0.count`" in desk.results[0]
    assert not desk.server.refused


def test_what_a_tool_returns_is_json_for_models_of_pydantic_too() -> None:
    from timeline.react._tools import as_text

    assert as_text([Item(name="a", count=1)]) == '[{"name":"a","count":1}]'
