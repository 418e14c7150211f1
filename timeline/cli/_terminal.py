"""What the command writes, line by line: escaped, since texts in a store are untrusted; errors; exit statuses.

All output of the command passes through here. `guarded` wraps standard output and standard error
while they are terminals, so that no command can forget it; tables and colours bypass it through
`Screen`, which escapes the texts in them.

Characters that a terminal would obey or hide are escaped as in JSON (ESC is `\\u001b`), so JSON stays JSON.
Output into a pipe or a file is not changed, as with `git show` and `cat`.
"""

import codecs
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime
from functools import lru_cache
from typing import IO, Any, Final, TextIO, cast

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""The exit statuses of the command; `wrap` ends with that of the agent."""


def say(text: str) -> None:
    """Print one line for people."""
    print(line(text))


def complain(message: str) -> None:
    """Print one line on standard error."""
    print(f"foldline: {line(' '.join(message.split()))}", file=sys.stderr)


def short(number: float) -> str:
    """A number in short form: `950`, `60k`, `4.3M`."""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            value = number / unit
            return f"{value:.1f}{letter}" if value < 10 else f"{value:.0f}{letter}"  # noqa: PLR2004 -- two digits
    return f"{number:.0f}"


def listed(words: Sequence[str], most: int, between: str = ", ") -> str:
    """The first few words, and how many more there are."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return between.join(words[:most]) + more


def when(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in the local time zone; the number itself if it is outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.3g}"


_UNSEEN: Final = re.compile(
    "\r(?!\n)|["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters except tab and line break
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"  # characters that change direction or break lines
    "\xad\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\u115f\u1160\u2800\u3164\uffa0"  # blank letters
    "\ud800-\udfff"  # surrogates
    "]+"
)
_SHORT: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_ERRORS: Final = "foldline.spelled"


def visible(text: str) -> str:
    """A text of one or more lines with its control and invisible characters escaped."""
    return _UNSEEN.sub(lambda match: "".join(map(_spelling, match[0])), text)


def line(text: str) -> str:
    """A name or a message on one line; one that would look empty is escaped."""
    shown = visible(text.translate(_SHORT))
    if text and not shown.strip("\u200c\u200d").strip():
        return "".join(map(_spelling, text))
    return shown


@lru_cache(maxsize=4096)
def _spelling(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _unencodable(error: UnicodeError) -> tuple[str, int]:
    """Error handler that escapes characters missing in a stream's encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spelling, error.object[error.start : error.end])), error.end


codecs.register_error(_ERRORS, _unencodable)


class Changed:
    """A stream to which texts are written as a function changes them."""

    def __init__(self, stream: IO[str], change: Callable[[str], str]) -> None:
        self.stream = stream
        self.change = change

    def write(self, text: str) -> int:
        self.stream.write(self.change(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarded() -> Generator[None]:
    """Guard standard output and standard error: no character fails or controls the terminal."""
    with redirect_stdout(_guard(sys.stdout)), redirect_stderr(_guard(sys.stderr)):
        yield


def _guard(stream: TextIO) -> TextIO:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_ERRORS)
    return cast("TextIO", Changed(stream, visible)) if stream.isatty() else stream


def unguarded(stream: TextIO) -> TextIO:
    """The stream behind the guard, for a caller that writes colours and escapes texts itself."""
    return cast("TextIO", stream.stream) if isinstance(stream, Changed) else stream
