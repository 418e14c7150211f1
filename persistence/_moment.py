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
    """Copy `path` and the files with its name plus one of `endings`, in this order, into `folder`; return the path of
    the copy.  Files that do not exist are left out.

    `folded` reads a value from `path` that changes whenever the log is checkpointed into the file.

    Raises:
        StoreLockedError: in each of `TRIES` attempts a checkpoint happened during the copy.
        StoreError: the operating system denies reading.
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
    """Whether the operating system permits writing to a file and to its folder."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _copy(path: Path, folder: Path) -> None:
    copy = folder / path.name
    try:
        shutil.copyfile(path, copy)
    except FileNotFoundError:  # a checkpoint may remove the log at any time
        copy.unlink(missing_ok=True)
