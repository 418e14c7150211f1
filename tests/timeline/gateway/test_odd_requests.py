"""Requests that the gateway does not understand go on as they are; what the upstream says of them comes back."""

import json
from typing import Any

import pytest

from tests._table import for_each

from ._two_ways import WIRES, Ways, ways

__all__ = ["ways"]

pytestmark = pytest.mark.network

JSON = {"content-type": "application/json"}
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "cut": b'{"model": "claude-sonnet-5-5", "messages": [{"role": "user", "con',
    "no object": b"[1, 2, 3]",
    "no JSON": b"hello",
    "no text": b'{"model": "\xff\xfe"}',
    "nested too deeply": b'{"messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no messages": b'{"model": "claude-sonnet-5-5", "max_tokens": 5}',
    "messages of another kind": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": "hi"}',
    "an empty history": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": []}',
    "a message that is none": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": [1]}',
    "content that is none": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": [{"role": "user"}]}',
    "half a pair": json.dumps(
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 5,
            "messages": [{"role": "user", "content": "\ud800"}],
        }
    ).encode(),
    "no such model": b'{"model": "nobody", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}',
    "an unknown field": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "to": 1, '
    b'"messages": [{"role": "user", "content": "hi"}]}',
    "a result without a call": b'{"model": "claude-sonnet-5-5", "max_tokens": 5, "messages": [{"role": "user",'
    b'"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}]}',
}


@for_each("body", BODIES)
def test_bodies_that_are_no_requests(ways: Ways, body: str) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens", "/v1/responses"):
        headers = {**JSON, **WIRES["responses"].headers}
        direct, through = ways.raw("POST", path, content=BODIES[body], headers=headers)
        assert through == direct


@for_each("kind", ["text/plain", "application/x-www-form-urlencoded", "image/png", ""])
def test_other_content_types(ways: Ways, kind: str) -> None:
    body = json.dumps(dict(WIRES["messages"].body)).encode()
    headers = {"content-type": kind} if kind else {}
    direct, through = ways.raw("POST", "/v1/messages", content=body, headers=headers)
    assert through == direct
    assert direct.status == 200


PATHS = [
    ("GET", "/v1/models"),
    ("GET", "/v1/models?limit=5"),
    ("GET", "/v1/models/claude-sonnet-5-5"),
    ("GET", "/v1/models/nobody"),
    ("GET", "/v1/messages"),
    ("DELETE", "/v1/messages"),
    ("POST", "/v1/complete"),
    ("POST", "/v1/messages/batches"),
    ("GET", "/v1/files/a%2Fb?x=%20y"),
    ("PUT", "/anything/at/all"),
    ("HEAD", "/v1/models"),
]


@for_each(("method", "path"), PATHS)
def test_paths_that_are_not_rendered(ways: Ways, method: str, path: str) -> None:
    direct, through = ways.raw(method, path)
    assert through == direct


def test_a_request_without_a_key_is_refused_by_the_upstream(ways: Ways) -> None:
    given: Any = {"headers": {"x-api-key": ""}, "json": dict(WIRES["messages"].body)}
    direct, through = ways.raw("POST", "/v1/messages", **given)
    assert through == direct
    assert direct.status == 401


@pytest.mark.parametrize("shape", ["one text", "no JSON"])
def test_fifty_megabytes(ways: Ways, shape: str) -> None:
    body = b"x" * 50_000_000
    if shape == "one text":
        said = {"role": "user", "content": body.decode()}
        body = json.dumps({**WIRES["messages"].body, "messages": [said]}).encode()
    direct, through = ways.raw("POST", "/v1/messages", content=body, headers=JSON)
    assert through.status == direct.status
    assert json.loads(through.body)["error"]["type"] == json.loads(direct.body)["error"]["type"]
    after, behind = ways.both(WIRES["messages"])
    assert behind.status == after.status == 200


def test_a_call_that_names_what_a_provider_may_hold_is_a_call_like_any_other(ways: Ways) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "read_file"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "nothing"}
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [{**call, "input": {"path": "compaction_trigger"}}]},
        {"role": "user", "content": [result]},
    ]
    direct, through = ways.both(WIRES["messages"], messages=messages)
    assert through == direct
    assert [info.version > 3 for info in ways.gateway.gateway.opened.list()] == [True]
