"""Calls that do not fit a signature raise one error of ours, and nothing else changes."""

import asyncio
import inspect
from typing import Any

import attrs
import pytest

from blocks import ArgumentError, MisuseError, checked_calls, did_you_mean, in_words
from tests._table import for_each


@checked_calls
@attrs.frozen(kw_only=True)
class Box:
    """A class with one of each kind."""

    width: int = attrs.field(default=1, validator=attrs.validators.ge(1))

    @classmethod
    def made(cls, width: int) -> "Box":
        return cls(width=width)

    def scaled(self, *, factor: int = 1) -> int:
        """Times a factor."""
        return self.width * factor

    async def later(self, factor: int) -> int:
        return self.width * factor

    def broken(self) -> int:
        return len(5)  # type: ignore[arg-type]


def test_a_call_that_fits_is_what_it_was() -> None:
    assert Box.made(3).scaled(factor=2) == 6
    assert asyncio.run(Box(width=3).later(2)) == 6
    assert inspect.iscoroutinefunction(Box.later)
    assert inspect.getdoc(Box.scaled) == "Times a factor."
    assert list(inspect.signature(Box.scaled).parameters) == ["self", "factor"]


@for_each(
    ("do", "said"),
    [
        (lambda: Box(widht=1), r"Box\(\) takes no 'widht'; did you mean 'width'\?"),  # type: ignore[call-arg]
        (lambda: Box(zzz=1), r"Box\(\) takes no 'zzz'; it takes width"),  # type: ignore[call-arg]
        (lambda: Box(width=0), r"Box\(\): 'width' must be >= 1"),
        (lambda: Box(width="x"), r"Box\(\): '>=' not supported"),  # type: ignore[arg-type]
        (lambda: Box().scaled(facto=2), r"Box.scaled\(\) takes no 'facto'; did you mean 'factor'"),  # type: ignore[call-arg]
        (lambda: Box().scaled(2), r"Box.scaled\(\): takes 1 positional argument but 2"),  # type: ignore[call-arg]
        (lambda: Box.made(zzz=1), r"Box.made\(\) takes no 'zzz'"),  # type: ignore[call-arg]
        (lambda: asyncio.run(Box().later()), r"Box.later\(\): missing 1 required"),  # type: ignore[call-arg]
    ],
    ids=range(8),
)  # fmt: skip
def test_a_call_that_does_not_fit_says_why(do: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        do()


def test_what_goes_wrong_inside_is_not_touched() -> None:
    with pytest.raises(TypeError) as raised:
        Box().broken()
    assert not isinstance(raised.value, MisuseError)


def test_the_nearest_name_is_offered_and_a_far_one_is_not() -> None:
    assert did_you_mean("stor", ("store", "model")) == "; did you mean 'store'?"
    assert did_you_mean("zzz", ("store", "model")) == did_you_mean(5, ("store",)) == ""
    assert did_you_mean("model", ("x", "mode", "modell")) == "; did you mean 'modell'?"


@for_each(
    ("value", "words"),
    [(None, "None"), (5, "5"), ("x", "'x'"), ("y" * 99, f"'{'y' * 60}…'"), ({"k": "v"}, "a dict")],
)
def test_a_message_shows_little_of_a_value(value: Any, words: str) -> None:
    assert in_words(value) == words
