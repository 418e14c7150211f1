"""Parameters of every kind of type: the schema is the type's own, what arrives is converted, and what is wrong is told."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from blocks import MisuseError, ToolResult
from tests._practice import Practice
from tests._table import for_each
from timeline import tool
from timeline.fake_provider import Call, Reply

from .desk import EVERYWHERE, Desk


class Item(BaseModel):
    name: str = Field(description="Its name.")
    count: int = Field(ge=1)


class Order(BaseModel):
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
    (Order, {"items": [{"name": "a", "count": 2}]}, Order(items=[Item(name="a", count=2)])),
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
        Order,
        {"items": [{"name": "a", "count": 0}]},
        "greater than or equal to 1 - at `$.x.items.0.count`",
    ),
    (Order, {"items": [], "mode": "slow"}, "'fast' or 'cheap' - at `$.x.mode`"),
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
    schema = tool(taking(Order)).input_schema
    wanted = TypeAdapter(Order).json_schema(ref_template="#/$defs/{model}")
    assert schema["$defs"]["Item"] == wanted["$defs"]["Item"]
    assert schema["$defs"]["Order"]["properties"] == wanted["properties"]
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Order"}
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
        note: str = None,  # type: ignore[assignment] # noqa: RUF013 -- as people write it
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
def needs_unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821
def wrong_default(x: int = "y") -> None: ...  # type: ignore[assignment]
def wrong_field(x: int = Field("y", ge=1)) -> None: ...  # type: ignore[assignment]
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

    def order(mine: Item, yours: list[Order]) -> None: ...

    order.__annotations__["mine"] = Item
    with pytest.raises(MisuseError, match="two different types have the name Item"):
        tool(order)


@EVERYWHERE
def test_typed_arguments_arrive_and_violations_go_back(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    """At every provider: the model corrects what was refused."""
    orders: list[tuple[Order, Place, Color]] = []

    def order(order: Order, place: Place, color: Color = Color.RED) -> str:
        """Order something."""
        orders.append((order, place, color))
        return "ordered"

    def call(count: int) -> Call:
        items = [{"name": "pear", "count": count}]
        return Call("order", {"order": {"items": items}, "place": {"street": "a"}, "color": "blue"})

    script = [Reply(text="I order.", calls=[call(0)]), Reply(calls=[call(2)]), Reply(text="Done.")]
    desk = Desk.at(practice, (provider, is_async), script, tools=[order])
    assert desk.run().text == "Done."
    assert orders == [(Order(items=[Item(name="pear", count=2)]), Place("a"), Color.BLUE)]
    refused, done = desk.blocks(ToolResult)
    assert (refused.is_error, done.is_error) == (True, False)
    assert "greater than or equal to 1 - at `$.order.items.0.count`" in desk.results[0]
    assert not desk.server.refused


def test_what_a_tool_returns_is_json_for_models_of_pydantic_too() -> None:
    from timeline.react._tools import as_text

    assert as_text([Item(name="a", count=1)]) == '[{"name":"a","count":1}]'
