"""What arrived may be looked at afterwards, whatever it was; keys were not kept."""

import json

import pytest
import zstandard

from tests import _http
from tests._practice import Practice
from timeline.fake_provider import Reply
from timeline.fake_provider._provider import HttpRequest

from .requests import request

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
