"""The protocol of a rung of the ladder, and the rungs that a policy may contain."""

from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args

from blocks import did_you_mean, in_short
from render.policy._validators import listed

RungName: TypeAlias = Literal["externalize", "summarize", "clear", "drop"]
"""The built-in rungs."""
BUILT_IN: Final[tuple[str, ...]] = get_args(RungName)


class Rung(Protocol):
    """One way in which a compaction may make room.

    A policy holds it, so it must be hashable, and equal to any rung that would do the same; a frozen class is both.
    """

    @property
    def name(self) -> str:
        """The rung's name in messages; it must differ from the names of all other rungs."""
        ...

    def propose(self, scope: Any, /) -> Iterable[object]:
        """Its proposals for a `RungScope`: any number of `Clear`, `Externalize` and `Drop`, or one
        `Summarize`. It must be a pure function: no I/O, no clock, no waiting; equal scopes give equal proposals.
        If it raises, the compaction goes on without it (`RungError`)."""
        ...


def listed_rungs(given: Iterable[RungName | Rung]) -> tuple[RungName | Rung, ...]:
    """The rungs of a policy as a tuple."""
    rungs: tuple[RungName | Rung, ...] = listed(given)
    return rungs


def checked_rungs(_: object, attribute: Any, given: object) -> None:
    """Refuse a value that is not a tuple of rungs.

    Raises:
        ValueError: an item is neither a built-in name nor a rung; or two rungs have the same name.
    """
    got = repr(given)
    rungs = cast("tuple[object, ...]", given if isinstance(given, tuple) else (given,))
    wrong = [rung for rung in rungs if not _is_rung(rung)]
    if wrong or not isinstance(given, tuple):
        near = did_you_mean(wrong[0], BUILT_IN) if wrong else ""
        raise ValueError(
            f"{attribute.name!r} must be a list of {', '.join(BUILT_IN)}, or rungs of your own: objects"
            f" with a name, propose(scope) and a hash (got {in_short(got)}){near}"
        )
    own: list[str] = [getattr(rung, "name", "") for rung in rungs if not isinstance(rung, str)]
    for name in own:
        if own.count(name) > 1 or name in BUILT_IN:
            raise ValueError(f"{attribute.name!r}: more than one rung is named {name!r}")


def _is_rung(given: object) -> bool:
    if isinstance(given, str):
        return given in BUILT_IN
    name, propose = getattr(given, "name", ""), getattr(given, "propose", None)
    is_named = isinstance(name, str) and name != ""
    return is_named and callable(propose) and not isinstance(given, type) and _is_hashable(given)


def _is_hashable(given: object) -> bool:
    try:
        hash(given)
    except TypeError:
        return False
    return True
