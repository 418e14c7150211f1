"""A progress bar on stderr, when somebody is looking."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from timeline.cli._console import screen
from timeline.cli._visible import line

if TYPE_CHECKING:
    from timeline.replay._replay import Progress


@contextmanager
def progress_bar(title: str, total: int) -> "Generator[Progress | None]":
    """A bar that is gone at the end; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=screen(sys.stderr), transient=True) as bar:
        task = bar.add_task(line(title), total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)
