"""Where the command writes: tables and colours for people, wide plain lines for everything else."""

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_COLUMNS = 200
"""Into a pipe or a file nothing needs to be cut to the width of a screen."""


def screen() -> "Console":
    """Standard output."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


def print_json(value: Any) -> None:
    """One value on one line, for machines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def plural(number: int, word: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
