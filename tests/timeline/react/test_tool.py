"""Tools: what the model is told about a function, and what becomes of what it sends."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

from blocks import BlockId, CallId, MisuseError, TextPart, ToolCall, TurnId
from tests._table import for_each
from timeline import tool
from timeline.react import Tool, ToolReply
from timeline.react._tools import Caller, CallResult


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


def called(function: Tool | Callable[..., Any], **given: Any) -> CallResult:
    made = function if isinstance(function, Tool) else tool(function)
    clock = iter((1.0, 3.0))
    caller = Caller(tools={made.name: made}, clock=lambda: next(clock))
    return result_of(caller, call_of(made.name, given))


def result_of(caller: Caller, call: ToolCall) -> CallResult:
    done = caller.call(call)
    assert isinstance(done, CallResult)
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
