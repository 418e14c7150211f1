"""Reads the usage in a provider's answer while the answer streams through."""

from collections.abc import Mapping
from typing import Any, Final, cast

import attrs
import msgspec

from blocks.formats import Format, Stream, obj, stream_of, string
from render import Json

USAGE: Final = b'"usage"'
JSON_BYTES_MAX: Final = 2**25
"""Largest size of an answer without a stream that is read."""


@attrs.define
class Answer:
    """Reads an answer; of a stream, only the events with its usage."""

    format: Format
    is_stream: bool
    _stream: Stream = attrs.field(init=False)
    _rest: bytearray = attrs.field(factory=bytearray, init=False)
    _is_lost: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._stream = stream_of(self.format, "gateway")

    @classmethod
    def of(cls, format: Format, headers: Mapping[str, str]) -> "Answer":  # noqa: A002 -- as everywhere
        """The reader for a response with these headers."""
        return cls(format, "event-stream" in headers.get("content-type", ""))

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the answer."""
        if self._is_lost:
            return
        self._rest += chunk
        if self.is_stream:
            self._take_lines()
        if len(self._rest) > JSON_BYTES_MAX:
            self._is_lost = True
            self._rest.clear()

    def response(self) -> Json | None:
        """The usage and identity of the response; None: nothing could be read."""
        if self.is_stream:
            return self._stream.response()
        found = _json(bytes(self._rest))
        return found or None

    def _take_lines(self) -> None:
        end = self._rest.rfind(b"\n")
        if end < 0:
            return
        lines, self._rest = bytes(self._rest[:end]), self._rest[end + 1 :]
        if USAGE not in lines:
            return
        for line in lines.splitlines():
            if line.startswith(b"data:") and USAGE in line and (event := _json(line[5:])):
                self._stream.add(event)


def error_in(data: bytes) -> tuple[str, str]:
    """The most specific name and the message of an error, if the body has them."""
    found = obj(_json(data).get("error"))
    return str(found.get("code") or found.get("type") or ""), string(found.get("message"))


def _json(data: bytes) -> Json:
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast("Json", found) if isinstance(found, dict) else {}
