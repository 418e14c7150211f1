"""Finds the session files of a command line: files, folders, patterns, `-` for standard input."""

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from timeline.cli._console import UsageError, complain, plural

STDIN: Final = "-"
ENDINGS: Final = (".jsonl", ".json", ".ndjson", ".traj", ".jsonl.gz", ".json.gz")
"""The endings of files that are taken from a folder."""
FILES_HELP: Final = (
    "a session file of any known format, a folder, a pattern, or - for standard input"
)
NAMED_MAX: Final = 3


@attrs.frozen
class File:
    """A session file."""

    path: str
    is_found: bool = False
    """Whether it was found in a folder or by a pattern, so that it need not be a session."""


@contextmanager
def session_files(given: Sequence[str]) -> Generator[list[File]]:
    """The session files, in the order given; standard input becomes a temporary file.

    Raises:
        UsageError: a folder has no session file, or a pattern matches none.
    """
    with TemporaryDirectory(prefix="foldline-") as folder:
        yield [file for name in given for file in _files(name, Path(folder))]


def _files(name: str, folder: Path) -> Iterator[File]:
    if name == STDIN:
        yield File(str(_piped_in(folder)))
        return
    name = os.path.expanduser(name)  # noqa: PTH111 -- where no shell has done it
    if Path(name).is_dir():
        yield from _checked(_in_folder(name), f"{name}: no session file in this folder")
    elif has_magic(name) and not Path(name).exists():
        names = sorted(glob(name, recursive=True))  # noqa: PTH207 -- as a shell does it
        files = [each for each in names if not Path(each).is_dir()]
        yield from _checked(files, f"{name}: no file matches this pattern")
    else:
        yield File(name)


def _checked(found: Sequence[str], complaint: str) -> Iterator[File]:
    if not found:
        raise UsageError(f"{complaint}; looked for names that end in {', '.join(ENDINGS)}")
    return (File(path, is_found=True) for path in found)


def _in_folder(folder: str) -> list[str]:
    """All files below a folder, except hidden ones."""
    found: list[str] = []
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        found += [os.path.join(place, n) for n in sorted(names) if n.lower().endswith(ENDINGS)]  # noqa: PTH118 -- as it was given
    return found


def _piped_in(folder: Path) -> Path:
    path = folder / "stdin.jsonl"
    if sys.stdin.isatty():
        complain("reading a session from the terminal; end it with Ctrl-D")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def tell_passed_over(passed: Sequence[str]) -> None:
    """Print which of the found files were left out."""
    if passed:
        more = f" and {len(passed) - NAMED_MAX:,} more" if len(passed) > NAMED_MAX else ""
        named = "; ".join(passed[:NAMED_MAX])
        complain(f"{plural(len(passed), 'file')} passed over: {named}{more}")
