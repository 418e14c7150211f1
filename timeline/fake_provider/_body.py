"""Reads the body of a request: size, compression, JSON."""

import gzip
import json
import zlib
from typing import Any, Final, cast

import zstandard
from starlette.requests import Request

from render import Json
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._rules import invalid

_BYTES_MAX: Final = 2**26
"""Largest size of a request in bytes, both compressed and decompressed. The provider's own limit is half of it and
one of its rules."""
_TOO_LARGE: Final = ApiError(413, "request_too_large", "Request exceeds the maximum size")


async def json_of(http: Request) -> Json | ApiError:
    """The JSON object in a request's body, or the refusal."""
    read = bytearray()
    async for piece in http.stream():
        read += piece
        if len(read) > _BYTES_MAX:
            return _TOO_LARGE
    plain = unpacked(bytes(read), http.headers.get("content-encoding", ""))
    if isinstance(plain, ApiError):
        return plain
    try:
        body: Any = json.loads(plain)
    except (ValueError, RecursionError) as error:
        return invalid(f"The request body is not valid JSON: {error}")
    if not isinstance(body, dict):
        return invalid("Input should be an object")
    return cast("Json", body)


def unpacked(packed: bytes, encoding: str) -> bytes | ApiError:
    """The decompressed body, or the refusal."""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                return packed
            case "gzip":
                plain = gzip.decompress(packed)
            case "zstd":
                reader = zstandard.ZstdDecompressor().stream_reader(packed)
                plain = reader.read(_BYTES_MAX + 1)
            case other:
                text = f"Unsupported content encoding: {other}"
                return ApiError(415, "invalid_request_error", text)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        return invalid(f"The request body could not be decompressed: {error}")
    return _TOO_LARGE if len(plain) > _BYTES_MAX else plain
