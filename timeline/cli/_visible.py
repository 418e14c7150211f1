"""Escapes characters that a terminal would obey or hide, since texts in a store are untrusted.

All output of the command passes through here. `guarded` wraps standard output and standard error
while they are terminals, so that no command can forget it; tables and colours bypass it through
`Screen`, which escapes the texts in them.

Characters are escaped as in JSON (ESC is `\\u001b`), so JSON stays JSON. Output into a pipe or a
file is not changed, as with `git show` and `cat`.
"""

import codecs
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from typing import Any, Final, TextIO, cast

_UNSEEN: Final = re.compile(
    "\r(?!\n)|["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters except tab and line break
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"  # characters that change direction or break lines
    "\xad\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\u115f\u1160\u2800\u3164\uffa0"  # blank letters
    "\ud800-\udfff"  # surrogates
    "]+"
)
_SHORT: Final = (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_ERRORS: Final = "foldline.spelled"


def visible(text: str) -> str:
    """A text of one or more lines with its control and invisible characters escaped."""
    return _UNSEEN.sub(_spelled, text)


def line(text: str) -> str:
    """A name or a message on one line; one that would look empty is escaped."""
    shown = text
    for sign, spelled in _SHORT:
        shown = shown.replace(sign, spelled)
    shown = visible(shown)
    if text and not shown.strip("\u200c\u200d").strip():
        return "".join(map(_spelling, text))
    return shown


def _spelled(found: re.Match[str]) -> str:
    return "".join(map(_spelling, found[0]))


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


class _Guard:
    """A terminal stream that escapes the characters that would control it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(visible(text))
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
    return cast("TextIO", _Guard(stream)) if stream.isatty() else stream


def unguarded(stream: TextIO) -> TextIO:
    """The stream behind the guard, for a caller that writes colours and escapes texts itself."""
    return stream.stream if isinstance(stream, _Guard) else stream
