"""Checks of single arguments.

`call` names the called method in error messages, such as "note()".
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypeVar, cast

import msgspec

from blocks import MisuseError, in_words

_T = TypeVar("_T")
_NO_FIELDS: Final[Mapping[str, Any]] = {}


def checked_text(value: object, call: str, name: str = "text") -> str:
    """A text that can be stored and sent.

    Raises:
        MisuseError: it is not a string, or holds half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise MisuseError(f"{call}: {name} is a text (str), not {in_words(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise MisuseError(
            f"{call}: {name} has half of a surrogate pair at character {error.start}, which "
            "nothing can store or send; drop it with text.encode(errors='ignore').decode()"
        ) from None
    return value


def checked_words(value: object, call: str, name: str = "text") -> str:
    """A text that is not empty, because providers refuse empty texts."""
    text = checked_text(value, call, name)
    if not text.strip():
        raise MisuseError(f"{call}: {name} is empty, and would not be shown")
    return text


def checked_name(value: object, call: str) -> str:
    """The name of a timeline."""
    name = checked_words(value, call, "name")
    if "\0" in name:
        raise MisuseError(
            f"{call}: {in_words(name)} cannot name a timeline; use some printable text"
        )
    return name


def checked_whole(value: Any, call: str, name: str, least: int = 0) -> int:
    """A whole number, not below a minimum."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise MisuseError(
            f"{call}: {name} is a whole number, {least} or more, not {in_words(value)}"
        )
    return value


def checked_kind(value: object, kind: type[_T], call: str, name: str) -> _T:
    """An instance of a class."""
    if not isinstance(value, kind):
        raise MisuseError(f"{call}: {name} is a {kind.__name__}, not {in_words(value)}")
    return value


def checked_choice(value: object, known: Sequence[str], call: str, name: str) -> str:
    """One of the known words."""
    if not isinstance(value, str) or value not in known:
        raise MisuseError(f"{call}: {name} is one of {', '.join(known)}, not {in_words(value)}")
    return value


def checked_struct(value: object, kind: type[_T], call: str, name: str) -> _T:
    """A struct of a class whose fields all have the declared types."""
    found = checked_kind(value, kind, call, name)
    try:
        msgspec.json.decode(msgspec.json.encode(found), type=kind)
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError) as error:
        raise MisuseError(
            f"{call}: {name} is no {kind.__name__} as it should be: {error}"
        ) from error
    return found


def checked_keys(keys: tuple[Any, ...], call: str) -> tuple[str, ...]:
    """Paths or ids of blocks, at least one."""
    if not keys:
        raise MisuseError(f"{call}: name at least one block, by path or id")
    for key in keys:
        if not isinstance(key, str):
            raise MisuseError(
                f"{call} takes paths or ids of blocks, one by one, not {in_words(key)}"
            )
    return keys


def fields_of(value: object) -> Mapping[str, Any]:
    """The fields of a JSON object; empty for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else _NO_FIELDS


def checked_time(value: Any) -> float:
    """A time in seconds since the epoch."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise MisuseError(f"at={in_words(value)}: give seconds since the epoch")
    return value


def checked_timeout(value: Any, call: str) -> float | None:
    """Largest number of seconds to wait; None: no limit."""
    if value is not None and not _are_seconds(value):
        raise MisuseError(f"{call}: timeout is seconds, 0 or more, or None, not {in_words(value)}")
    return cast("float | None", value)


def checked_interval(value: Any, call: str) -> tuple[float, float]:
    """Seconds between two polls: at first, and at most."""
    match value:
        case (first, longest) if _are_seconds(first, longest) and 0 < first <= longest:
            return first, longest
        case _:
            raise MisuseError(
                f"{call}: interval is two numbers of seconds, 0 < first <= longest, not"
                f" {in_words(value)}"
            )


def _are_seconds(*values: Any) -> bool:
    return all(
        isinstance(v, int | float) and not isinstance(v, bool) and isfinite(v) and v >= 0
        for v in values
    )
