"""Turns a file into JSON objects, and reads as much of a damaged file as possible.

The file is read and unpacked piece by piece; only one line at a time is held besides the parsed objects.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from blocks import CodecError, SessionFormatError, clean_json, fault_in
from blocks.formats import Json, obj, objs
from persistence.sessions._pieces import BYTES_MAX, Lines, Numbered, numbered, opened
from persistence.sessions._session import Notice

Record: TypeAlias = tuple[int, Json]
"""A JSON object, and its line number; 0 if it is an item of a list."""

_HEAD_RECORDS = 200
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

    @property
    def name(self) -> str:
        """The file's name without its suffixes, with the number of the conversation."""
        name = Path(self.path).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name if self.index is None else f"{name}#{self.index}"

    @property
    def head(self) -> tuple[Record, ...]:
        """The first records, by which the format is recognized."""
        return self.records[:_HEAD_RECORDS]

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
            raise SessionFormatError(f"{path}: empty; there is no session in it")
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
        raise SessionFormatError(f"{path}: JSON, but without a single object; no session in it")
    return Source(path=path, records=tuple(records))


def _lines(path: str, lines: Iterable[Numbered], data: bytearray | None = None) -> Source:
    """The objects of several lines; `data` has all lines, in case they are one document."""
    records: list[Record] = []
    notices: list[Notice] = []
    unread = 0
    for number, line in lines:
        for value in _values(line):
            if found := obj(value):
                records.append((number, found))
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
    return [(1, found)] if (found := obj(value)) else [(0, item) for item in objs(value)]
