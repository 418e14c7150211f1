"""How the command writes (coloured tables to a terminal, wide plain lines elsewhere), and its exit codes."""

import argparse
import json
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Final, TextIO, cast

from blocks import clean_json
from timeline.cli._visible import line, unguarded, visible

if TYPE_CHECKING:
    from rich.console import Console

    from render import Model
    from timeline.replay import Progress

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(Exception):
    """The command line is wrong."""


def complain(message: str) -> None:
    """Print one line on stderr."""
    print(f"foldline: {line(' '.join(message.split()))}", file=sys.stderr)


_PADDING: Final = re.compile(r" +(?=\n)")
PIPE_COLUMNS = 200
"""The width of output into a pipe or a file, unless `COLUMNS` is set."""
DAY_AND_TIME = "%Y-%m-%d %H:%M:%S"


def screen(stream: TextIO | None = None) -> "Console":
    """A console on standard output, or on another stream."""
    from timeline.cli._screen import Screen

    console = Screen(file=unguarded(stream or sys.stdout))
    if not console.is_terminal:
        given = os.environ.get("COLUMNS", "")
        console.width = int(given) if given.isdecimal() and int(given) else PIPE_COLUMNS
        console.file = cast("TextIO", Unpadded(console.file))
    return console


class Unpadded:
    """A pipe or a file to which tables are written without the blanks that fill their lines."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(_PADDING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def say(text: str) -> None:
    """Print one line for people."""
    print(line(text))


def tell_guess(model: "Model", stream: TextIO) -> None:
    """Print a first line if the window and prices of the model are a guess."""
    from timeline._models import guess_about

    if guess := guess_about(model):
        print(line(guess), file=stream)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        data = json.dumps(clean_json(value), ensure_ascii=False)
    sys.stdout.write(visible(data) + "\n")


def answer(options: argparse.Namespace, facts: dict[str, Any], text: str) -> int:
    """Print what was done: `facts` as JSON with `--json`, otherwise `text`."""
    if options.json:
        print_json(facts)
    else:
        say(text)
    return DONE


def plural(number: int, word: str) -> str:
    """A number with its noun: `1 call`, `2 calls`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def when(seconds: float, form: str = DAY_AND_TIME) -> str:
    """A time in the local time zone; the number itself if it is outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.3g}"


@contextmanager
def progress_bar(title: str, total: int) -> "Generator[Progress | None]":
    """A bar that is gone at the end; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    name = TextColumn("{task.description}", markup=False)
    left = TextColumn("left", style="dim")
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True), left)
    with Progress(*columns, console=screen(sys.stderr), transient=True) as bar:
        task = bar.add_task(line(title), total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)
