"""Decoding request bodies, which some clients compress."""

import zlib
from typing import Final

from timeline.gateway._body import UnreadableError

DECODED_BYTES_MAX: Final = 2**26
"""Largest size of a decoded body."""


class TooLargeError(Exception):
    """A request that is larger than any provider accepts."""


def decoded(raw: bytes, coding: str) -> bytes:
    """A body with its content coding removed (RFC 9110, 8.4).

    Raises:
        UnreadableError: its coding is not supported, it is damaged, or it would become too large.
    """
    match coding.strip().lower():
        case "" | "identity":
            return raw
        case "gzip" | "x-gzip":
            return _inflated(raw, 16 + zlib.MAX_WBITS)
        case "deflate":
            return _inflated(raw, zlib.MAX_WBITS)
        case "zstd":
            return _zstd(raw)
        case other:
            raise UnreadableError(f"its coding is {other!r}")


def _inflated(raw: bytes, bits: int) -> bytes:
    unpack = zlib.decompressobj(bits)
    try:
        found = unpack.decompress(raw, DECODED_BYTES_MAX)
    except zlib.error as error:
        raise UnreadableError(f"it is damaged ({error})") from error
    if unpack.unconsumed_tail or not unpack.eof:
        raise UnreadableError("it is damaged, or too large")
    return found


def _zstd(raw: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
            found = reader.read(DECODED_BYTES_MAX + 1)
    except zstandard.ZstdError as error:
        raise UnreadableError(f"it is damaged ({error})") from error
    if len(found) > DECODED_BYTES_MAX:
        raise UnreadableError("it is too large")
    return found
