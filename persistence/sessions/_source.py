"""From a file to JSON objects, with as much of a damaged file as can still be read."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import msgspec

from blocks import CodecError, SessionFormatError, clean_json, fault_in
from persistence.sessions._json import Json, obj, objs
from persistence.sessions._session import Notice

Record: TypeAlias = tuple[int, Json]
"""A JSON object with its line number; 0 when it is an item of one big list."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 8192
_HEAD_RECORDS = 200
_SUFFIXES = (".gz", ".jsonl", ".json", ".traj", ".ndjson")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_stdlib = json.JSONDecoder()


@attrs.frozen(kw_only=True)
class Source:
    """A file as its JSON objects: the lines of JSONL, the items of a list, or one document."""

    path: str
    records: tuple[Record, ...]
    notices: tuple[Notice, ...] = ()
    index: int | None = None
    """Which conversation was asked for, in a file of several: `results.json#3`."""

    @property
    def name(self) -> str:
        """The file's name without what only says its format."""
        name = Path(self.path).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name if self.index is None else f"{name}#{self.index}"

    @property
    def head(self) -> tuple[Record, ...]:
        """Enough to tell a format by."""
        return self.records[:_HEAD_RECORDS]

    @property
    def messages(self) -> tuple[Record, ...]:
        """Chat messages: those of the document, or the records themselves."""
        inner = objs(self.document.get("messages"))
        return tuple((0, message) for message in inner) or self.records

    @property
    def document(self) -> Json:
        """The only object; empty when there are several."""
        return self.records[0][1] if len(self.records) == 1 else {}


def open_source(path: str) -> Source:
    """Read `path`, which may end in `#` and the number of a conversation in the file.

    Raises:
        SessionFormatError: there is no JSON object in it that could be read.
    """
    file, mark, number = path.rpartition("#")
    if mark and number.isdecimal() and not Path(path).exists():
        return attrs.evolve(_read(file), index=int(number))
    return _read(path)


def _read(path: str) -> Source:
    data = _bytes(path)
    try:
        value = msgspec.json.decode(data)
    except _BROKEN:
        return _lines(path, data)
    records = _document(value)
    if not records:
        raise SessionFormatError(f"{path}: JSON, but without a single object; no session in it")
    return Source(path=path, records=tuple(records))


def _bytes(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise SessionFormatError(f"{path}: no such file; give the path of a session file") from None
    except (EOFError, zlib.error) as error:
        raise SessionFormatError(f"{path}: broken gzip ({error}); fetch the file again") from error
    except OSError as error:
        raise SessionFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    data = data.removeprefix(_BOM)
    if not data.strip():
        raise SessionFormatError(f"{path}: empty; there is no session in it")
    if b"\0" in data[:_HEAD_BYTES]:
        raise SessionFormatError(f"{path}: binary; a session file is JSON or JSON lines")
    return data


def _lines(path: str, data: bytes) -> Source:
    records: list[Record] = []
    notices: list[Notice] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line := line.strip():
            for value in _values(line):
                if found := obj(value):
                    records.append((number, found))
                else:
                    notices.append(Notice(line=number, text=_complaint(value)))
    records = records or _whole(data)
    if not records:
        raise SessionFormatError(
            f"{path}: not readable as JSON or JSON lines (line {notices[0].line}: "
            f"{notices[0].text}); the file may be cut off or of another kind"
        )
    return Source(path=path, records=tuple(records), notices=tuple(notices))


def _complaint(value: Any) -> str:
    if isinstance(value, ValueError | RecursionError | CodecError):
        return f"broken JSON, skipped: {str(value)[:120]}"
    return "no JSON object, skipped"


def _values(line: bytes) -> Iterator[Any]:
    """What a line holds: one object, several glued together, or the error that broke it."""
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
            # Python's reader lets NaN and lone surrogates through, which no store can hold.
            yield clean_json(value)
        except (ValueError, RecursionError, CodecError) as error:
            yield error
            return
        while end < len(text) and text[end].isspace():
            end += 1


def _whole(data: bytes) -> list[Record]:
    """One document over many lines that only Python's reader accepts (it holds a NaN)."""
    text = data.decode("utf-8", "replace").strip()
    values = list(_glued(text))
    return _document(values[0]) if len(values) == 1 else []


def _document(value: Any) -> list[Record]:
    """The items of a list, or one object."""
    return [(1, found)] if (found := obj(value)) else [(0, item) for item in objs(value)]
