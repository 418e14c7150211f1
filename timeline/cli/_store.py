"""The store that a command works on."""

import argparse
import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blocks import Recorded
    from persistence import EventStore, StoreLocation

DEFAULT = "foldline.duckdb"
VARIABLE = "FOLDLINE_STORE"
PAGE = 5_000


def store_option(parser: argparse.ArgumentParser) -> None:
    """Add `--store`."""
    parser.add_argument(
        "--store",
        metavar="WHERE",
        help=f"path or URL of the store (default: ${VARIABLE}, or {DEFAULT} in this folder)",
    )


def location(options: argparse.Namespace) -> "StoreLocation":
    """Where the store is that was asked for.

    Raises:
        MisuseError: there cannot be one.
    """
    from persistence import locate_store

    given = options.store
    return locate_store(os.environ.get(VARIABLE) or DEFAULT if given is None else given)


@contextmanager
def opened(options: argparse.Namespace) -> "Generator[EventStore]":
    """The store, which must be there already.

    Raises:
        StoreError: it is not.
    """
    with closing(existing(options).open()) as store:
        yield store


def hidden_option(parser: argparse.ArgumentParser) -> None:
    """Whether to show what somebody asked for to be hidden."""
    parser.add_argument(
        "--hidden", action="store_true", help="also what is hidden on request, as it was appended"
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
