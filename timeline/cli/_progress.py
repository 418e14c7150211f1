"""A progress bar on stderr, when somebody is looking."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timeline.replay._replay import Progress


@contextmanager
def progress_bar(title: str, total: int) -> "Generator[Progress | None]":
    """A bar that is gone at the end; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, _: bar.update(task, completed=done)
