"""The tree of errors is the one that is drawn, and says whose fault it is."""

import re

import blocks
from blocks import _errors as errors
from tests._table import for_each


def drawn_parents() -> dict[str, str]:
    """Name of each error in the drawing, with the name of the one it hangs on."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").split("\n"):
        found = re.match(r"([ │├└─]*)([A-Z]\w+Error)\b", line)
        if not found:
            continue
        depth, name = len(found.group(1)), found.group(2)
        while path and path[-1][0] >= depth:
            path.pop()
        parents[name] = path[-1][1] if path else "Exception"
        path.append((depth, name))
    return parents


def test_the_drawing_is_the_tree() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert drawn_parents() == {name: kind.__bases__[0].__name__ for name, kind in classes.items()}
    assert all(getattr(blocks, name) is kind for name, kind in classes.items())


def test_messages_say_what_to_do() -> None:
    assert "foldline show" in str(blocks.UnknownPathError("ar:t1.x"))
    assert "foldline list" in str(blocks.UnknownTimelineError("talk"))
    conflict = blocks.VersionConflictError(expected=3, found=5)
    assert (conflict.expected, conflict.found) == (3, 5)


@for_each("kind", [blocks.MisuseError, blocks.DataError, blocks.StoreError])
def test_each_branch_has_one_owner(kind: type[Exception]) -> None:
    branches = {blocks.MisuseError, blocks.DataError, blocks.StoreError}
    assert not any(issubclass(kind, other) for other in branches - {kind})
