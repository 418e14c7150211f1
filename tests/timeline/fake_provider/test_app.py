"""Bodies arrive plain or compressed, and never too large."""

import gzip
import json

import httpx2
import pytest
import zstandard

from tests import _http
from tests._practice import Practice
from tests._table import for_each
from timeline.fake_provider import FakeServer, Reply
from timeline.fake_provider._provider import HttpRequest

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


@for_each(
    ("encoding", "body"),
    [("", PLAIN), ("identity", PLAIN), ("gzip", gzip.compress(PLAIN)), ("ZSTD", zstd(PLAIN))],
)
def test_a_compressed_request_is_the_same_request(
    practice: Practice, encoding: str, body: bytes
) -> None:
    server = practice.serve(responder=[Reply(text="Yes.")])
    assert posted(server, body, encoding).json()["content"][0]["text"] == "Yes."
    assert server.requests == [request()]


@for_each(
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


# What arrived may be looked at afterwards, whatever it was; keys were not kept.


KEY = "sk-of-somebody"


def test_every_request_is_kept_as_it_was_sent(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(text="Yes.")])
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "X-Session-Id": "s1"}
    packed = zstandard.compress(json.dumps(request()).encode())
    _http.head(server.url)
    _http.get(f"{server.url}/v1/nothing?a=1&b=")
    _http.post(
        f"{server.url}/v1/messages?beta=true",
        content=packed,
        headers={**headers, "content-encoding": "zstd"},
    )
    first, second, third = server.http_requests
    assert (first.method, first.path, first.status) == ("HEAD", "/", 200)
    assert (second.path, second.query, second.status) == ("/v1/nothing", "a=1&b=", 404)
    assert (third.query, third.headers["x-session-id"], third.status) == ("beta=true", "s1", 200)
    assert third.body == packed
    assert third.json == request()


def test_no_key_is_kept_wherever_it_was(practice: Practice) -> None:
    server = practice.serve()
    names = ("x-api-key", "Authorization", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization")
    _http.get(f"{server.url}/v1/models?key={KEY}&a=b", headers=dict.fromkeys(names, KEY))
    [kept] = server.http_requests
    assert KEY not in repr(kept)
    assert dict.fromkeys(map(str.lower, names), "***").items() <= kept.headers.items()
    assert kept.query.endswith("&a=b")


def test_a_body_that_is_no_json_says_so() -> None:
    kept = HttpRequest(method="POST", path="/", query="", headers={"content-encoding": "zstd"})
    kept.pieces.append(b"not zstd")
    with pytest.raises(ValueError, match="decompressed"):
        _ = kept.json
