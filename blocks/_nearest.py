"""Finds known names that are similar to a wrong one, for error messages."""

from collections.abc import Iterable
from typing import Any, Final

_SHOWN_MAX: Final = 60
QUOTED_MAX: Final = 200
"""Characters of what was given that an error message quotes at most."""


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """`; did you mean 'store'?` if a known name is similar; else empty."""
    near = nearest(given, known)
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest(given: object, known: Iterable[str], count: int = 1) -> list[str]:
    """The known names that are similar to the given one, most similar first."""
    from difflib import get_close_matches  # loaded only after an error

    return get_close_matches(given, list(known), n=count) if isinstance(given, str) else []


def in_short(text: str) -> str:
    """A text for a message: its beginning and its end if it is longer than 200 characters."""
    half = QUOTED_MAX // 2 - 1
    return text if len(text) <= QUOTED_MAX else f"{text[:half]}…{text[-half:]}"


def in_words(value: Any) -> str:
    """A value for a message: a number or a short text unchanged, of other values only the type."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN_MAX else f"{value[:_SHOWN_MAX]}…")
    return f"a {type(value).__name__}"
