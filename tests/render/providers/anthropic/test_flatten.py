"""What the prompt cache sees of a request: what is counted, what makes two blocks one."""

import json
from collections.abc import Hashable
from typing import Any

import attrs

from blocks import DocumentPart, ImagePart, Part
from render import PROVIDERS
from tests._table import for_each

MARK = {"type": "ephemeral"}
MESSAGES_API = PROVIDERS["anthropic"]
HOUR_MARK = {"type": "ephemeral", "ttl": "1h"}


@attrs.define
class Characters:
    """Counts characters."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: Part) -> int:
        match part:
            case ImagePart():
                return 1_500
            case DocumentPart():
                return 3_000
            case _:
                return 7


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


@attrs.frozen
class Flat:
    """A segment, counted."""

    key: Hashable
    kind: str
    tokens: int
    ttl: int


def flat(request: dict[str, Any]) -> list[Flat]:
    parts = (request.get(name, ()) for name in ("system", "tools", "messages"))
    found = (MESSAGES_API.segment(*content) for content in MESSAGES_API.contents(*parts))
    return [Flat(s.key, s.kind, s.tokens(Characters()), s.ttl) for s in found]


def only(content: dict[str, Any]) -> Flat:
    (block,) = flat(user(content))
    return block


def test_the_order_is_tools_system_messages() -> None:
    tool = {"name": "ls", "input_schema": {"type": "object"}}
    request = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": HOUR_MARK}],
        "tools": [tool | {"cache_control": MARK}],
    }
    blocks = flat(request)
    assert [(block.kind, block.tokens, block.ttl) for block in blocks] == [
        ("tool", len(json.dumps(tool)), 300),
        ("system", 9, 3_600),
        ("text", 2 + 3, 0),
        ("text", 5 + 3, 0),
    ]


def test_a_system_text_and_a_list_are_the_same() -> None:
    listed = flat({"system": [{"type": "text", "text": "S"}]})
    assert flat({"system": "S"}) == listed
    assert flat({"system": ""}) == flat({}) == []


def test_tool_traffic_costs_its_json_and_an_envelope() -> None:
    call = {"type": "tool_use", "id": "a", "name": "run", "input": {"cmd": "écho"}}
    assert only(call).tokens == len("run") + len('{"cmd": "écho"}') + 3 + 12
    result = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
    assert only(result).tokens == 4 + 3 + 12
    listed = result | {"content": [{"type": "text", "text": "done"}, {"type": "image"}]}
    assert only(listed).tokens == 4 + 1_500 + 3 + 12


@for_each(
    ("block", "tokens"),
    [
        ({"type": "image", "source": {"type": "base64", "data": "x"}}, 1_500),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}}, 1_500),
        ({"type": "document", "source": {"type": "base64", "data": "x"}}, 3_000),
        ({"type": "thinking", "thinking": "hmm", "signature": "s" * 500}, 3),
        ({"type": "redacted_thinking", "data": "xxxx"}, 4),
        ({"type": "compaction", "content": "sum"}, 3),
        ({"type": "compaction", "content": None}, 0),
        ({"type": "search_result", "title": "t"}, 7),
        ({}, 7),
    ],
)
def test_every_kind_has_a_size(block: dict[str, Any], tokens: int) -> None:
    assert only(block).tokens == tokens + 3


def test_a_mark_is_no_content() -> None:
    for block in (
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "a", "name": "n", "input": {}},
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        {"type": "search_result", "title": "t"},
    ):
        plain, marked = only(block), only(block | {"cache_control": MARK})
        assert marked == attrs.evolve(plain, ttl=300)


@for_each(
    ("one", "other"),
    [
        ({"type": "text", "text": "x"}, {"type": "text", "text": "y"}),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": 1, "q": 2}},
            {"type": "tool_use", "id": "a", "name": "n", "input": {"q": 2, "p": 1}},
        ),
        (
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": 1}},
            {"type": "tool_use", "id": "a", "name": "n", "input": {"p": True}},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "b", "content": "x"},
        ),
        (
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
        ),
        (
            {"type": "thinking", "thinking": "", "signature": "1"},
            {"type": "thinking", "thinking": "", "signature": "2"},
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": "x"}},
            {"type": "image", "source": {"type": "base64", "data": "y"}},
        ),
    ],
)
def test_what_the_prefix_hash_tells_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Provider docs, prompt caching: 100% identical segments, the order of keys included."""
    first, second = flat(user(one, other))
    assert first.key != second.key
    again, _ = flat(user(one, one))
    assert again.key == first.key


def test_the_role_is_part_of_a_block() -> None:
    text = [{"type": "text", "text": "x"}]
    messages = [{"role": role, "content": text} for role in ("user", "assistant", "system")]
    blocks = flat({"system": "x", "messages": messages})
    assert len({block.key for block in blocks}) == 4


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {"x": "\ud800"}}
    first, second = flat(user(call, call))
    assert first == second


def test_a_result_as_text_and_as_a_list_of_one_text_are_the_same() -> None:
    result = {"type": "tool_result", "tool_use_id": "a"}
    text, listed = flat(
        user(result | {"content": "x"}, result | {"content": [{"type": "text", "text": "x"}]})
    )
    assert text == listed
