"""Bodies arrive plain or compressed, and never too large."""

import gzip
import json

import httpx2
import pytest
import zstandard

from tests import _http
from tests._practice import Practice
from timeline.fake_provider import FakeServer, Reply

from .requests import request

HEADERS = {"x-api-key": "test", "anthropic-version": "2023-06-01"}
PLAIN = json.dumps(request()).encode()


def zstd(data: bytes) -> bytes:
    """As a stream: what comes does not say how long it will be."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(data) + writer.flush()


def posted(server: FakeServer, body: bytes, encoding: str) -> httpx2.Response:
    headers = {**HEADERS, "content-encoding": encoding}
    return _http.post(f"{server.url}/v1/messages?beta=true", content=body, headers=headers)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("", PLAIN), ("identity", PLAIN), ("gzip", gzip.compress(PLAIN)), ("ZSTD", zstd(PLAIN))],
)
def test_a_compressed_request_is_the_same_request(
    practice: Practice, encoding: str, body: bytes
) -> None:
    server = practice.serve(responder=[Reply(text="Yes.")])
    assert posted(server, body, encoding).json()["content"][0]["text"] == "Yes."
    assert server.requests == [request()]


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("zstd", b"not zstd", 400),
        ("zstd", zstd(PLAIN)[:-20], 400),
        ("gzip", b"not gzip", 400),
        ("gzip", gzip.compress(PLAIN)[:-20], 400),
        ("br", PLAIN, 415),
        ("zstd", zstd(bytes(2**26 + 1)), 413),
        ("gzip", gzip.compress(bytes(2**26 + 1), 1), 413),
    ],
)
def test_what_cannot_be_unpacked_is_refused(
    practice: Practice, encoding: str, body: bytes, status: int
) -> None:
    server = practice.serve()
    answer = posted(server, body, encoding)
    assert answer.status_code == status
    assert answer.json()["type"] == "error"
    assert server.requests == []
