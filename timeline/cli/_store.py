"""What a command works on: a store, session files, JSON for options."""

import argparse
import json
import os
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from timeline.cli._console import UsageError, complain

if TYPE_CHECKING:
    from blocks import Recorded, TimelineId
    from persistence import EventStore, StoreLocation
    from persistence.sessions import Session
    from timeline._arguments import System, Tools

_Row = TypeVar("_Row")

DEFAULT = "foldline.duckdb"
SHARED = "sqlite:///foldline.sqlite"
VARIABLE = "FOLDLINE_STORE"
PAGE = 5_000
_NAME_MAX, _HASH = 60, 8


def store_option(parser: argparse.ArgumentParser) -> None:
    """Add `--store`."""
    parser.add_argument(
        "--store",
        metavar="WHERE",
        help=f"path or URL of the store (default: ${VARIABLE}, or foldline.duckdb or foldline.sqlite"
        " in this folder, or what a gateway keeps of this folder)",
    )


def gateway_place() -> Path:
    """What a gateway keeps of the sessions in this folder. It is not in the folder: what anybody said would be
    committed, copied and searched with the project. It is SQLite: several gateways can have it open at the same time,
    and so can commands that read."""
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        data = given if given.is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:  # a user without a home
        return Path("foldline.sqlite")
    here = Path.cwd()
    name = re.sub(r"[^\w.-]+", "_", here.name)[:_NAME_MAX]
    return data / "foldline" / f"{name}-{sha256(os.fsencode(here)).hexdigest()[:_HASH]}.sqlite"


def gateway_location(options: argparse.Namespace) -> "StoreLocation":
    """As `location`, for a gateway, which makes a new store outside this folder.

    Raises:
        MisuseError: there cannot be one.
        StoreError: the folder for it cannot be made.
    """
    from blocks import StoreError

    place = gateway_place()
    where = location(options, new=place)
    if str(where) == str(place):
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{place.parent} cannot be made: {error.strerror}; name another place with --store or {VARIABLE}"
            ) from error
    return where


def location(options: argparse.Namespace, new: "str | Path" = DEFAULT) -> "StoreLocation":
    """Where the store is that was asked for; if none was, the one in this folder or of its gateway, or `new` if there
    is none.

    Raises:
        MisuseError: there cannot be one.
    """
    from persistence import locate_store

    if options.store is not None:
        return locate_store(options.store)
    if named := os.environ.get(VARIABLE):
        return locate_store(named)
    here = [locate_store(each) for each in (DEFAULT, SHARED, gateway_place())]
    return next((place for place in here if place.exists()), locate_store(new))


@contextmanager
def opened(options: argparse.Namespace) -> "Generator[EventStore]":
    """The store, which must be there already.

    Raises:
        StoreError: it is not.
    """
    with closing(existing(options).open()) as store:
        yield store


@contextmanager
def looked_at(options: argparse.Namespace) -> "Generator[EventStore]":
    """The store, to read from: a copy of it as it is now, and a line on stderr says so, where it is in use or
    cannot be written to.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    from persistence import look

    place = existing(options)
    with look(place) as (store, is_copy):
        if is_copy:
            tell_copy(place)
        yield store


def tell_copy(place: "StoreLocation") -> None:
    """Say that it is not the store itself that is shown."""
    complain(f"{place} is in use or read-only: this is what it holds at this moment")


def hidden_option(parser: argparse.ArgumentParser) -> None:
    """Whether to show what somebody asked for to be hidden."""
    parser.add_argument(
        "--hidden",
        action="store_true",
        help="also show blocks hidden on request, with their original text",
    )


def existing(options: argparse.Namespace) -> "StoreLocation":
    """Where the store is that was asked for, which must be there already.

    Raises:
        StoreError: it is not.
    """
    from blocks import StoreError

    where = location(options)
    if not where.exists():
        raise StoreError(
            f"no store {where}; `foldline import FILE` makes one, --store names another"
        )
    return where


def log_of(store: "EventStore", name: str) -> "list[Recorded]":
    """The log of a timeline, all that is left of it; says on stderr what is gone.

    Raises:
        UnknownTimelineError: there is none of this name.
    """
    known = checked_name(store, name)
    return pages(partial(store.read, known), forgotten_of(store, name))


def checked_name(store: "EventStore", name: str) -> "TimelineId":
    """The timeline of this name.

    Raises:
        UnknownTimelineError: there is none.
    """
    from blocks import TimelineId, UnknownTimelineError

    if not store.head(TimelineId(name)):
        raise UnknownTimelineError(name, (info.id for info in store.list()))
    return TimelineId(name)


def pages(read: "Callable[..., Sequence[_Row]]", after: int = 0) -> "list[_Row]":
    """All that `read(after=..., limit=...)` gives behind a version, one page after another."""
    found: list[_Row] = []
    while page := read(after=after + len(found), limit=PAGE):
        found += page
    return found


def forgotten_of(store: "EventStore", name: str) -> int:
    """The newest event of a timeline that is gone; says so on stderr."""
    from blocks import TimelineId

    gone = store.kept(TimelineId(name)).forgotten
    if gone:
        complain(f"{name}: events 1 to {gone:,} are forgotten; what is left begins at {gone + 1:,}")
    return gone


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

    return read_session(file, format=options.format, **bytes_limit(options))


def bytes_limit(options: argparse.Namespace) -> dict[str, int]:
    """How many bytes a session file may have, if that was said."""
    return {} if options.bytes_max is None else {"bytes_max": options.bytes_max}


def fixed_options(parser: argparse.ArgumentParser) -> None:
    """What a request has besides messages."""
    add = parser.add_argument
    add("--system", type=Path, metavar="FILE", help="system prompt: a JSON string or text blocks")
    add("--tools", type=Path, metavar="FILE", help="tool definitions: a JSON list")


def fixed_from(options: argparse.Namespace) -> "tuple[System, Tools]":
    """System prompt and tool definitions, as these options say.

    Raises:
        UsageError: the system prompt is neither a JSON string nor a list of text blocks, or the tools
            are no list of objects with a name.
    """
    system, tools = _json(options.system), _json(options.tools)
    if system is not None and not isinstance(system, str):
        wanted = "give a JSON string or a list of text blocks"
        system = _objects(system, "text", f"--system {options.system}: {wanted}")
    if tools is not None:
        wanted = "give a JSON list of objects with a name"
        tools = _objects(tools, "name", f"--tools {options.tools}: {wanted}")
    return system, tools


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
