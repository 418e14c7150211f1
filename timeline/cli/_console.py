"""What the command shows: coloured tables on a terminal, wide plain lines elsewhere, a pager, a progress bar, JSON."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TextIO, cast

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from blocks import clean_json
from timeline.cli._options import Values
from timeline.cli._terminal import DONE, Changed, line, say, unguarded, visible

PIPE_COLUMNS: Final = 200
"""The width of output into a pipe or a file, unless `COLUMNS` is set."""
PAGERS: Final = ("FOLDLINE_PAGER", "PAGER")
"""The first variable that is set names the pager; empty or `cat` means none. Without them it is `less`."""
LESS: Final = "FRX"
"""Options for `less` unless `LESS` is set: quit if it fits one screen, keep colours and screen."""
_PADDING: Final = re.compile(r" +(?=\n)")


class Screen(Console):
    """A console that prints texts literally: no markup, no emoji codes, no control characters.

    A string is one line; a `Text` may have several.
    """

    def __init__(self, file: TextIO) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Leave to the command what rich would end with exit status 1."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a printed string, or one in a table, into a text."""
        options.update(markup=False, emoji=False)
        return super().render_str(line(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make all printed text safe; rich's own control codes pass unchanged."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


def screen(stream: TextIO | None = None) -> Console:
    """A console on standard output, or on another stream."""
    console = Screen(file=unguarded(stream or sys.stdout))
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = int(columns) if columns.isdecimal() and int(columns) else PIPE_COLUMNS
        # without the blanks that fill the lines of tables
        console.file = cast("TextIO", Changed(console.file, partial(_PADDING.sub, "")))
    return console


def wide_table(*names: str) -> Table:
    """A table without lines between its columns; `names` are its text columns."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    for name in names:
        table.add_column(name, overflow="fold")  # a narrow screen wraps names, not numbers
    return table


def number_columns(table: Table, names: Iterable[str]) -> None:
    """Add columns of numbers, which are never wrapped."""
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def close_table(widths: dict[str, int], numbers: Iterable[str], folded: str = "") -> Table:
    """A table with one blank between columns of these widths.

    Texts that are longer are cut; only those in the column `folded` are wrapped. `numbers` names the columns that are
    aligned right.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name, width in widths.items():
        table.add_column(
            name,
            width=width,
            overflow="fold" if name == folded else "ellipsis",
            no_wrap=name != folded,
            justify="right" if name in numbers else "left",
        )
    return table


@contextmanager
def paged() -> Generator[Console]:
    """A console whose output goes through the pager, as with `git log`, if it is a terminal and there is a pager."""
    words = shlex.split(next((os.environ[name] for name in PAGERS if name in os.environ), "less"))
    pager = words if words and words != ["cat"] and shutil.which(words[0]) else []
    console = screen()
    if not console.is_terminal or not pager:
        yield console
        sys.stdout.flush()
        return
    with console.capture() as captured:
        yield console
    environment = {"LESS": LESS, "LESSCHARSET": "utf-8", **os.environ}
    with (
        subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment) as process,  # noqa: S603 -- the user's own
        suppress(BrokenPipeError, KeyboardInterrupt),  # the user quit the pager
    ):
        process.communicate(captured.get().encode(errors="replace"))


@contextmanager
def progress_bar(title: str, total: int) -> Generator[Callable[[int, int], None]]:
    """A bar that is gone at the end; call what it gives with the number done and the total. Without a terminal, none."""
    if not sys.stderr.isatty():
        yield lambda done, of: None  # noqa: ARG005 -- nobody sees it
        return
    from rich import progress  # only where a bar is shown

    columns: Sequence[progress.ProgressColumn] = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(compact=True),
        progress.TextColumn("left", style="dim"),
    )
    with progress.Progress(*columns, console=screen(sys.stderr), transient=True) as bar:
        task = bar.add_task(line(title), total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        data = json.dumps(clean_json(value), ensure_ascii=False)
    sys.stdout.write(visible(data) + "\n")


def answer(options: Values, facts: dict[str, Any], text: str) -> int:
    """Print what was done: `facts` as JSON with `--json`, otherwise `text`."""
    if options.json:
        print_json(facts)
    else:
        say(text)
    return DONE
