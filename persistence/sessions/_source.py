"""Turns a file into JSON objects, and reads as much of a damaged file as possible.

The file, plain or compressed, is read and unpacked piece by piece; only one line at a time is held besides the parsed
objects.  The size of a file in memory is limited, because a compressed file of a megabyte can unpack to
gigabytes, and because two bytes of JSON can become a hundred bytes in Python. So both bytes and values are
counted while they are read, before they are parsed.
"""

import gzip
import json
import math
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from blocks import CodecError, MisuseError, SessionFormatError, clean_json, fault_in
from blocks.formats import Json, obj, objs, string
from persistence.sessions._session import Notice

# The bytes.


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
            f"bytes_max={bytes_max}: give the largest size of a session in bytes, 1 or more"
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
        raise SessionFormatError(
            f"{path}: damaged gzip file ({error}); copy the file again"
        ) from error
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
            "much, set a higher limit (bytes_max, or --bytes-max N)"
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


# The objects.


Record: TypeAlias = tuple[int, Json]
"""A JSON object, and its line number; 0 if it is an item of a list."""

_OPENINGS: Final = (b"{", b"[")
"""A line that begins a document on several lines, and cannot be one of JSON lines."""
_SUFFIXES = (".gz", ".jsonl", ".json", ".traj", ".ndjson")
NOTICES_MAX: Final = 1_000
"""Lines that are reported separately; further ones are only counted."""
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_stdlib = json.JSONDecoder()


@attrs.frozen(kw_only=True)
class Source:
    """The JSON objects of a file: the lines of JSONL, the items of a list, or one document."""

    path: str
    records: tuple[Record, ...]
    notices: tuple[Notice, ...] = ()
    index: int | None = None
    """The number of the requested conversation in the file (`results.json#3`); None: none was requested."""
    memo: dict[str, Any] = attrs.field(factory=dict[str, Any], eq=False, repr=False)
    """What a format keeps for the other conversations of the file."""

    @property
    def name(self) -> str:
        """The file's name without its suffixes, with the number of the conversation."""
        name = Path(self.path).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name if self.index is None else f"{name}#{self.index}"

    @property
    def messages(self) -> tuple[Record, ...]:
        """Chat messages: those of the document, or the records themselves."""
        inner = objs(self.document.get("messages"))
        return tuple((0, message) for message in inner) or self.records

    @property
    def document(self) -> Json:
        """The only record; empty if there are several."""
        return self.records[0][1] if len(self.records) == 1 else {}


def open_source(path: str, bytes_max: int = BYTES_MAX) -> Source:
    """Read `path`, which may end in `#` and the number of a conversation in the file.

    Raises:
        SessionFormatError: no JSON object in it can be read, or it is too large.
    """
    file, mark, number = path.rpartition("#")
    if mark and number.isdecimal() and not Path(path).exists():
        return attrs.evolve(_read(file, bytes_max), index=int(number))
    return _read(path, bytes_max)


def _read(path: str, bytes_max: int) -> Source:
    with opened(path, bytes_max) as lines:
        first = next(lines, None)
        if first is None:
            raise SessionFormatError(f"{path}: the file is empty")
        try:
            value = msgspec.json.decode(first[1])
        except _BROKEN:  # a document on several lines, or a broken line
            return _held(path, first, lines)
        second = next(lines, None)
        if second is None:
            return _one(path, value)
        del value
        return _lines(path, chain((first, second), lines))


def _held(path: str, first: Numbered, lines: Lines) -> Source:
    """The source of a file whose first line is not valid JSON, so that the whole file must be in memory."""
    data = first[1]
    lines.rest(data)
    try:
        value = msgspec.json.decode(data)
    except _BROKEN:
        return _lines(path, numbered(data, first[0]), data)
    return _one(path, value)


def _one(path: str, value: Any) -> Source:
    records = _document(value)
    if not records:
        raise SessionFormatError(
            f"{path}: the file is JSON, but contains no object, so it is not a session"
        )
    return Source(path=path, records=tuple(records))


def _lines(path: str, lines: Iterable[Numbered], data: bytearray | None = None) -> Source:
    """The objects of several lines; `data` has all lines, in case they are one document."""
    records: list[Record] = []
    notices: list[Notice] = []
    unread, rest, is_held = 0, iter(lines), False
    while each := next(rest, None):
        number, line = each
        if bytes(line) in _OPENINGS and not is_held:
            held, is_held = list(rest), True
            if document := _whole(bytearray(b"\n".join([line, *(other for _, other in held)]))):
                text = "a document begins here; what is before it was skipped"
                notice = Notice(line=number, text=text)
                return Source(path=path, records=tuple(document), notices=(notice,))
            rest = iter(held)
        for value in _values(line):
            if record := obj(value):
                records.append((number, record))
            elif len(notices) < NOTICES_MAX:
                notices.append(Notice(line=number, text=_complaint(value)))
            else:
                unread += 1
    records = records or (_whole(data) if data else [])
    if not records:
        raise SessionFormatError(
            f"{path}: not readable as JSON or JSON lines (line {notices[0].line}: "
            f"{notices[0].text}); the file may be cut off or of another kind"
        )
    if unread:
        notices.append(Notice(line=0, text=f"{unread:,} more such places, skipped"))
    return Source(path=path, records=tuple(records), notices=tuple(notices))


def _complaint(value: Any) -> str:
    if isinstance(value, ValueError | RecursionError | CodecError):
        return f"broken JSON, skipped: {str(value)[:120]}"
    return "no JSON object, skipped"


def _values(line: bytearray) -> Iterator[Any]:
    """The values in a line: one object, or several without a separator; or the error that reading it raised."""
    try:
        value = msgspec.json.decode(line)
    except _BROKEN:
        yield from _glued(line.decode("utf-8", "replace"))
    else:
        fault = fault_in(value)
        yield CodecError(fault) if fault else value


def _glued(text: str) -> Iterator[Any]:
    end = 0
    while end < len(text):
        try:
            value, end = _stdlib.raw_decode(text, end)
            # Python's reader accepts NaN and lone surrogates, which no store can represent.
            yield clean_json(value)
        except (ValueError, RecursionError, CodecError) as error:
            yield error
            return
        while end < len(text) and text[end].isspace():
            end += 1


def _whole(data: bytearray) -> list[Record]:
    """The records of a document on several lines that only Python's reader accepts, for example with NaN."""
    text = data.decode("utf-8", "replace").strip()
    values = list(_glued(text))
    return _document(values[0]) if len(values) == 1 else []


def _document(value: Any) -> list[Record]:
    """The records of a document: the items of a list, or one object."""
    return [(1, record)] if (record := obj(value)) else [(0, item) for item in objs(value)]


# What many logs have: times, and a tree of entries.


_MILLISECONDS_MIN = 1e11
"""Numbers greater than this are milliseconds: as seconds they would be in the year 5138."""


def seconds(value: Any) -> float | None:
    """A time in seconds since the epoch, from ISO text (UTC if it has no zone) or a number; None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value) or value <= 0:
            return None
        return value / 1000 if value > _MILLISECONDS_MIN else float(value)
    try:
        at = datetime.fromisoformat(string(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def path_to(
    place: int, parents: Sequence[str], places: Mapping[str, int], roots: Collection[str]
) -> list[int]:
    """The places of the entries on the path to the entry at `place`, from first to last.

    `parents` are the ids of the entries' parents, `places` the places of entries by id.  If a parent is missing from
    the file, the previous entry counts as the parent, as in a flat list.
    """
    path: list[int] = []
    while place >= 0:
        path.append(place)
        if parents[place] in roots:
            break
        place = min(places.get(parents[place], place - 1), place - 1)
    return path[::-1]
