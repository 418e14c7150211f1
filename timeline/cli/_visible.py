"""What a terminal would obey or hide is spelled out: names and texts in a store are other people's.

Everything that the command writes passes here. `guarded` puts itself in front of standard output and
standard error while they are terminals, so that no command can forget it; tables and colours go
around it through `Screen`, which does the same for the texts in them.

Characters are spelled as JSON spells them (an escape is `\\u001b`), so JSON stays JSON. Into a pipe or
a file goes what was written, byte for byte, as with `git show` and `cat`.
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
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters but tab and line break
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"  # what turns the direction, breaks lines
    "\xad\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\u115f\u1160\u2800\u3164\uffa0"  # signs without ink
    "\ud800-\udfff"  # half a character
    "]+"
)
_SHORT: Final = (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_ERRORS: Final = "foldline.spelled"


def visible(text: str) -> str:
    """A text of one line or many, with nothing in it that steers a terminal or is not seen."""
    return _UNSEEN.sub(_spelled, text)


def line(text: str) -> str:
    """A name or a message on one line; one that would look empty is spelled out."""
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
    """What the encoding of a stream does not have is spelled, too."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spelling, error.object[error.start : error.end])), error.end


codecs.register_error(_ERRORS, _unencodable)


class _Guard:
    """A terminal to which nothing is written that steers it."""

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
    """Standard output and standard error in which no character fails and none steers a terminal."""
    with redirect_stdout(_guard(sys.stdout)), redirect_stderr(_guard(sys.stderr)):
        yield


def _guard(stream: TextIO) -> TextIO:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_ERRORS)
    return cast("TextIO", _Guard(stream)) if stream.isatty() else stream


def unguarded(stream: TextIO) -> TextIO:
    """The stream behind the guard, for who writes colours and spells out the texts itself."""
    return stream.stream if isinstance(stream, _Guard) else stream
