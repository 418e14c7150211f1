"""Files given as arguments: sessions, and JSON for options."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from timeline.cli._errors import UsageError

if TYPE_CHECKING:
    from persistence.sessions import Session


def session_options(parser: argparse.ArgumentParser) -> None:
    """How session files are read."""
    add = parser.add_argument
    add("--format", default="auto", metavar="NAME", help="format of a file, if not detected")
    add("--bytes-max", type=int, metavar="N", help="bytes a file may have, unpacked (256 MiB)")


def session_from(file: str, options: argparse.Namespace) -> "Session":
    """A session file, as these options say.

    Raises:
        SessionFormatError: it cannot be read.
        MisuseError: an option makes no sense.
    """
    from persistence.sessions import read_session

    limit = {} if options.bytes_max is None else {"bytes_max": options.bytes_max}
    return read_session(file, format=options.format, **limit)


def system_from(path: Path | None) -> str | list[dict[str, Any]] | None:
    """A system prompt: a JSON string, or a list of text blocks.

    Raises:
        UsageError: it is something else.
    """
    value = _json(path)
    if value is None or isinstance(value, str):
        return value
    return _objects(value, "text", f"--system {path}: give a JSON string or a list of text blocks")


def tools_from(path: Path | None) -> list[dict[str, Any]] | None:
    """Tool definitions: a JSON list of objects with a name.

    Raises:
        UsageError: it is something else.
    """
    value = _json(path)
    if value is None:
        return None
    return _objects(value, "name", f"--tools {path}: give a JSON list of objects with a name")


def _json(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: no JSON ({error})") from error


def _objects(value: Any, key: str, complaint: str) -> list[dict[str, Any]]:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if all(_has(item, key) for item in items):
            return items
    raise UsageError(complaint)


def _has(item: Any, key: str) -> bool:
    return isinstance(item, dict) and isinstance(cast("dict[str, Any]", item).get(key), str)
