"""A session file, plain or compressed, line by line and within a limit.

The size of a file in memory is limited, because a compressed file of a megabyte can unpack to
gigabytes, and because two bytes of JSON can become a hundred bytes in Python. So both bytes and values are
counted while they are read, before they are parsed.
"""

import gzip
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from blocks import MisuseError, SessionFormatError

BYTES_MAX: Final = 256 * 2**20
"""The largest session file, in bytes after unpacking. In memory a session takes three to ten times as much."""
VALUE_BYTES: Final = 24
"""A file may have one JSON value per this many bytes of its limit; real files have fewer."""
VALUES_MIN: Final = 100_000
"""The number of values that any file may have."""
_PIECE_BYTES: Final = 2**20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 8192

Numbered: TypeAlias = tuple[int, bytearray]
"""A line that is not blank, and its number from 1."""


@contextmanager
def opened(path: str, bytes_max: int) -> "Generator[Lines]":
    """The lines of a file.

    Raises:
        SessionFormatError: it cannot be read or unpacked, is not text, or is too large.
        MisuseError: the limit is less than 1.
    """
    if bytes_max < 1:
        raise MisuseError(
            f"bytes_max={bytes_max}: give the bytes that a session may have, 1 or more"
        )
    try:
        with Path(path).open("rb") as file:
            is_packed = file.peek(2)[:2] == _GZIP
            stream = gzip.GzipFile(fileobj=file) if is_packed else file
            if b"\0" in stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]:
                raise SessionFormatError(f"{path}: binary; a session file is JSON or JSON lines")
            yield Lines(path, stream, bytes_max, "unpacks to" if is_packed else "has")
    except FileNotFoundError:
        raise SessionFormatError(f"{path}: no such file; give the path of a session file") from None
    except (EOFError, zlib.error) as error:
        raise SessionFormatError(f"{path}: broken gzip ({error}); fetch the file again") from error
    except OSError as error:
        raise SessionFormatError(f"{path}: cannot be read: {error.strerror or error}") from error


@attrs.define
class Lines:
    """The lines of a stream that are not blank."""

    _path: str
    _stream: gzip.GzipFile | BufferedReader
    _bytes_max: int
    _has: str
    """The verb of the error for a file that is too large: `has` or `unpacks to`."""
    _number: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _values: int = attrs.field(default=0, init=False)

    def __iter__(self) -> Iterator[Numbered]:
        return self

    def __next__(self) -> Numbered:
        while line := self._line():
            self._number += 1
            self._values += 1
            if self._number == 1 and line.startswith(_BOM):
                del line[: len(_BOM)]
            if stripped := line.strip():
                return self._number, stripped
        raise StopIteration

    def _line(self) -> bytearray:
        line = bytearray()
        while piece := self._stream.readline(_PIECE_BYTES):
            line += self._counted(piece)
            if piece.endswith(b"\n"):
                break
        return line

    def rest(self, data: bytearray) -> None:
        """Append a line break and all unread content to `data`, unchanged."""
        data += b"\n"
        while piece := self._stream.read(_PIECE_BYTES):
            data += self._counted(piece)

    def _counted(self, piece: bytes) -> bytes:
        """Count the bytes and estimate the JSON values: one for each comma, opening bracket and line.

        Raises:
            SessionFormatError: there are too many.
        """
        self._bytes += len(piece)
        self._values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        values_max = max(self._bytes_max // VALUE_BYTES, VALUES_MIN)
        if self._bytes > self._bytes_max:
            self._refuse(f"{self._bytes_max:,} bytes")
        if self._values > values_max:
            self._refuse(f"{values_max:,} JSON values, the limit for {self._bytes_max:,} bytes")
        return piece

    def _refuse(self, limit: str) -> None:
        raise SessionFormatError(
            f"{self._path}: {self._has} more than {limit}; if there is memory for several times as "
            "much, set a higher limit: --bytes-max N, in Python read_session(path, bytes_max=N)"
        )


def numbered(data: bytearray, first: int) -> Iterator[Numbered]:
    """The lines in `data` that are not blank; `first` is the number of its first line."""
    start, number = 0, first
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if line := data[start:end].strip():
            yield number, line
        start, number = end + 1, number + 1
