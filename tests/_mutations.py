"""Damages JSON on purpose: fields that vanish, move, repeat or have another type, and bytes that flip."""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**63, -(10**40), 1e308, 0.5, "", "x" * 5_000, "nul \0", "half \ud800"),
    *([], {}, [None], [[]], {"": None}, {"type": []}, [{"type": "text"}], "2026-11-22T00:00:00Z"),
    *("tool_use", "assistant", "user", "[v1]", "</summary>", "../../x", "9" * 400, "[" * 300),
)
DEPTH: Final = 300
Path = tuple[str | int, ...]


def mutated(data: bytes, seed: int) -> bytes:
    """The lines or the document in `data` with a few things wrong; which, follows from `seed`."""
    random = Random(seed)  # noqa: S311 -- no secret
    lines = data.split(b"\n") if b"\n{" in data else [data]
    for _ in range(random.randint(1, 6)):
        index = random.randrange(len(lines))
        change: Callable[[list[bytes], int, Random], None] = random.choice(
            (_field, _field, _field, _field, _bytes, _line)
        )
        change(lines, index, random)
        lines = lines or [b""]
    return b"\n".join(lines)


def mutated_value(value: Any, random: Random) -> Any:
    """A JSON value with one thing in it wrong; `value` may be changed."""
    paths = list(_paths(value, ()))
    path = random.choice(paths)
    if not path:
        return random.choice(ODD)
    holder: Any = value
    for key in path[:-1]:
        holder = holder[key]
    what = random.randrange(6)
    if what == 0:
        del holder[path[-1]]
    elif what == 1:
        holder[path[-1]] = _at(value, random.choice(paths))
    elif what == 2 and isinstance(holder, list):
        holder.append(holder[random.randrange(len(holder))])
    elif what == 3 and isinstance(holder, dict):
        holder[random.choice(("type", "id", "role", "content", "text", "\ud800"))] = holder.pop(
            path[-1]
        )
    elif what == 4:
        inner = holder[path[-1]]
        for _ in range(random.choice((1, 3, DEPTH))):
            inner = [inner]
        holder[path[-1]] = inner
    else:
        holder[path[-1]] = random.choice(ODD)
    return value


def _field(lines: list[bytes], index: int, random: Random) -> None:
    try:
        value = json.loads(lines[index])
    except (ValueError, RecursionError):
        return _bytes(lines, index, random)
    lines[index] = json.dumps(_copied(mutated_value(value, random))).encode()
    return None


def _bytes(lines: list[bytes], index: int, random: Random) -> None:
    line = bytearray(lines[index] or b"{}")
    at = random.randrange(len(line))
    match random.randrange(3):
        case 0:
            line[at] = random.randrange(256)
        case 1:
            del line[at:]
        case _:
            line[at:at] = random.choice(
                (b"\xff", b"\x00", b'"', b"}", b"NaN", b"\\ud83d", b"1e999")
            )
    lines[index] = bytes(line)


def _line(lines: list[bytes], index: int, random: Random) -> None:
    match random.randrange(3):
        case 0:
            del lines[index]
        case 1:
            lines.insert(random.randrange(len(lines) + 1), lines[index])
        case _:
            other = random.randrange(len(lines))
            lines[index], lines[other] = lines[other], lines[index]


def _paths(value: Any, path: Path) -> list[Path]:
    found = [path]
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += _paths(value[key], (*path, key))
    return found


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return _copied(value)


def _copied(value: Any) -> Any:
    """Without sharing, so that nothing contains itself."""
    return json.loads(json.dumps(value))
