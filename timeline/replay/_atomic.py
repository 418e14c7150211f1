"""Writes files atomically."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: Path) -> Generator[IO[bytes]]:
    """A temporary file beside `path` that is renamed to it at the end, or deleted after an error.

    Anything but an ordinary file (`/dev/stdout`, a pipe) is written directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == str(part):
            error.filename = str(path)  # not the temporary file's name
        _remove(part)
        raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
