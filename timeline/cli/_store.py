"""The store that a command works on."""

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blocks import Recorded
    from persistence import DuckDBStore

DEFAULT = "foldline.duckdb"
VARIABLE = "FOLDLINE_STORE"
PAGE = 5_000


def store_option(parser: argparse.ArgumentParser) -> None:
    """Add `--store`."""
    parser.add_argument(
        "--store",
        type=Path,
        metavar="PATH",
        help=f"the DuckDB file (default: ${VARIABLE}, or {DEFAULT} in this folder)",
    )


def store_path(options: argparse.Namespace) -> Path:
    """The file that was asked for."""
    return options.store or Path(os.environ.get(VARIABLE) or DEFAULT)


@contextmanager
def opened(options: argparse.Namespace) -> "Generator[DuckDBStore]":
    """The store, which must be there already.

    Raises:
        StoreError: it is not.
    """
    from persistence import DuckDBStore

    path = existing(options)
    with DuckDBStore(path) as store:
        yield store


def hidden_option(parser: argparse.ArgumentParser) -> None:
    """Whether to show what somebody asked for to be hidden."""
    parser.add_argument(
        "--hidden", action="store_true", help="also what is hidden on request, as it was appended"
    )


def existing(options: argparse.Namespace) -> Path:
    """The file that was asked for, which must be there already.

    Raises:
        StoreError: it is not.
    """
    from blocks import StoreError

    path = store_path(options)
    if not path.is_file():
        raise StoreError(
            f"no store {path}; `foldline import FILE` makes one, --store names another"
        )
    return path


def log_of(store: "DuckDBStore", name: str) -> "list[Recorded]":
    """The whole log of a timeline.

    Raises:
        UnknownTimelineError: there is none of this name.
    """
    from blocks import TimelineId, UnknownTimelineError

    if not store.head(TimelineId(name)):
        raise UnknownTimelineError(name)
    found: list[Recorded] = []
    while page := store.read(TimelineId(name), after=len(found), limit=PAGE):
        found += page
    return found
