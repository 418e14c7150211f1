"""Validators for the fields of a policy; their messages name the field and the value that it was given."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from blocks import in_short


def share() -> Any:
    """A number from 0 to 1."""
    return _checked("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)


def seconds() -> Any:
    """A finite number of seconds, 0 or more."""
    return _checked("0 or more seconds", lambda value: _is_number(value) and value >= 0)


def whole(least: int = 0) -> Any:
    """A whole number, `least` or more."""
    return _checked(
        f"a whole number, {least} or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
    )


def switch() -> Any:
    """True or false."""
    return _checked("true or false", lambda value: isinstance(value, bool))


def text() -> Any:
    """A text."""
    return _checked("a text", lambda value: isinstance(value, str))


def texts() -> Any:
    """A list of texts."""
    return _checked("a list of texts", lambda value: _all(value, lambda item: type(item) is str))


def one_of(known: Iterable[str]) -> Any:
    """One of the known words."""
    words = tuple(known)
    return _checked(f"one of {', '.join(words)}", lambda value: value in words)


def some_of(known: Iterable[str]) -> Any:
    """A list of known words."""
    words = tuple(known)
    return _checked(
        f"a list of {', '.join(words)}", lambda value: _all(value, lambda item: item in words)
    )


def table() -> Any:
    """A mapping."""
    return _checked("a table", lambda value: isinstance(value, Mapping))


def listed(given: Any) -> Any:
    """A list as a tuple.  A string is not split into its letters: it stays unchanged, for a validator to refuse."""
    items: Iterable[Any] = given
    return tuple(items) if isinstance(given, Iterable) and not isinstance(given, str) else given


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _all(value: Any, is_right: Callable[[Any], bool]) -> bool:
    items: Iterable[Any] = value
    return isinstance(value, tuple) and all(map(is_right, items))


def _checked(what: str, is_right: Callable[[Any], bool]) -> Any:
    def check(_: object, attribute: Any, value: object) -> None:
        if not is_right(value):
            raise ValueError(f"{attribute.name!r} must be {what} (got {in_short(repr(value))})")

    return check
