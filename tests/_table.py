"""One test that holds for every row of a table: one id, and a failure that names its row."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pytest

INTEGER_MAX = 10**20
_Test = TypeVar("_Test", bound=Callable[..., None])


def for_each(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[_Test], _Test]:
    """What `pytest.mark.parametrize` says, as subtests: all rows run, and each that fails is reported.

    The rows share the fixtures of the test, so this is for tests that change none of them.  A test that needs a fresh
    fixture a row, or rows that are chosen by a mark (`slow`), is parametrised.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    alone = isinstance(names, str) and len(keys) == 1
    table = [_row(row, alone=alone, name=ids if callable(ids) else _short) for row in rows]
    if ids is not None and not callable(ids):
        table = [(str(label), values) for label, (_, values) in zip(ids, table, strict=True)]

    def decorate(test: _Test) -> _Test:
        signature = inspect.signature(test)
        fixtures = [one for one in signature.parameters.values() if one.name not in keys]
        nested = "subtests" in signature.parameters

        @wraps(test)
        def run(*self: Any, subtests: pytest.Subtests, **given: Any) -> None:
            more = {"subtests": subtests} if nested else {}
            for label, row in table:
                with subtests.test(label):
                    test(*self, **given, **more, **dict(zip(keys, row, strict=True)))

        if not nested:
            fixtures.append(inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY))
        # pytest reads from it which fixtures the test takes.
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return cast("_Test", run)

    return decorate


def _row(row: Any, *, alone: bool, name: Callable[[Any], object]) -> tuple[str, Sequence[Any]]:
    """How a report calls it, and its values."""
    param = hasattr(row, "marks") and hasattr(row, "values")
    values: Sequence[Any] = row.values if param else [row] if alone else row
    label = row.id if param else None
    said = str(label or "-".join(str(name(value) or _short(value)) for value in values))
    return said.encode("ascii", "backslashreplace").decode(), values  # reports go through pipes


def _short(value: object) -> str:
    """Of a text the beginning; of what is no scalar the type."""
    if isinstance(value, int) and abs(value) > INTEGER_MAX:
        return "large"
    return str(value)[:80] if isinstance(value, str | int | float | None) else type(value).__name__
