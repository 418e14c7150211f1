"""Copies a database file and its write-ahead log in a consistent state while other processes write to them.

Writers append to the write-ahead log and, from time to time, checkpoint it into the file.  A copy is consistent
unless a checkpoint happened meanwhile; then the copy is made again.  Its last commit may be incomplete, but such a
commit was not yet acknowledged.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from blocks import StoreLockedError
from persistence._place import system_errors

TRIES: Final = 50
PAUSE_SECONDS: Final = 0.05


def copy_of_a_moment(
    path: Path, endings: Sequence[str], folder: Path, folded: Callable[[Path], object]
) -> Path:
    """The copy of `path`, in `folder`, with those of the files named `path` and an ending that are there, in this order.

    `folded` gives what changes when the log is folded into the file.

    Raises:
        StoreLockedError: it was folded again and again.
        StoreError: the system does not let us read.
    """
    for _ in range(TRIES):
        with system_errors(path):
            before = folded(path)
            for ending in endings:
                _copy(path.with_name(path.name + ending), folder)
            if folded(path) == before:
                return folder / path.name
        time.sleep(PAUSE_SECONDS)
    raise StoreLockedError(
        f"{path} is being rewritten all the time by another process; repeat the call"
    )


def is_writable(path: Path) -> bool:
    """Whether the operating system permits writing to a file and its folder."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _copy(path: Path, folder: Path) -> None:
    copy = folder / path.name
    try:
        shutil.copyfile(path, copy)
    except FileNotFoundError:  # a log that is folded is gone
        copy.unlink(missing_ok=True)
