"""Sends long output on a terminal through a pager, as `git log` does."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from timeline.cli._console import screen

if TYPE_CHECKING:
    from rich.console import Console

VARIABLES: Final = ("FOLDLINE_PAGER", "PAGER")
"""The first variable that is set names the pager; empty or `cat` means none."""
USUAL: Final = "less"
LESS: Final = "FRX"
"""Options for `less` unless `LESS` is set: quit if it fits one screen, keep colours and screen."""


@contextmanager
def paged() -> "Generator[Console]":
    """A console whose output goes through the pager, if it is a terminal and there is a pager."""
    pager = _pager()
    console = screen()
    if not console.is_terminal or not pager:
        yield console
        sys.stdout.flush()
        return
    with console.capture() as captured:
        yield console
    _show(pager, captured.get())


def _pager() -> list[str]:
    named = next((os.environ[name] for name in VARIABLES if name in os.environ), USUAL)
    words = shlex.split(named)
    return words if words and words != ["cat"] and shutil.which(words[0]) else []


def _show(pager: list[str], text: str) -> None:
    environment = {"LESS": LESS, "LESSCHARSET": "utf-8", **os.environ}
    with (
        subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment) as process,  # noqa: S603 -- the user's own
        suppress(BrokenPipeError, KeyboardInterrupt),  # the user quit the pager
    ):
        process.communicate(text.encode(errors="replace"))
