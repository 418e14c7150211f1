"""The validator as a whole: it survives any input, and remembering never changes a verdict."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from render.providers._facts import LEFT_MAX
from render.providers.anthropic import RequestValidator, validate_request
from render.providers.anthropic.validator import _message_rules, _validate

Message = dict[str, Any]

WORDS = st.sampled_from(
    ["", " ", "hi", "t1", "t2", "read", "a b", "user", "assistant", "system", "ephemeral", "5m", "1h",
     "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document",
     "search_result", "compaction", "server_tool_use", "base64", "url", "content", "image/png",
     "object", "custom", "enabled"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["type", "text", "id", "name", "input", "tool_use_id", "content", "source", "data", "media_type",
     "role", "cache_control", "ttl", "signature", "thinking", "citations", "url", "input_schema"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | WORDS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=5)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=25,
)
FIELDS = st.sampled_from(
    ["messages", "tools", "system", "thinking", "max_tokens", "cache_control", "model"]
)

IDS = st.sampled_from(["t1", "t2", "t3", "", "a b"])
MARKS = st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {}])
BLOCKS = st.one_of(
    st.builds(
        lambda words, mark: {"type": "text", "text": words, "cache_control": mark},
        st.sampled_from(["hi", "so ", " ", ""]),
        MARKS,
    ),
    st.builds(lambda i: {"type": "tool_use", "id": i, "name": "read", "input": {}}, IDS),
    st.builds(lambda i: {"type": "tool_result", "tool_use_id": i, "content": "x"}, IDS),
    st.just({"type": "thinking", "thinking": "", "signature": "s"}),
    st.just({"type": "web_search_tool_result"}),
    st.just({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
)
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "user", "assistant", "assistant", "system"]),
    st.lists(BLOCKS, max_size=3),
)
REQUESTS = st.lists(MESSAGES, max_size=8)


@settings(deadline=None)
@given(ANYTHING)
def test_it_never_raises_whatever_the_request_is(anything: Any) -> None:
    validate_request(anything)


@settings(deadline=None)
@given(st.dictionaries(FIELDS, ANYTHING))
def test_it_never_raises_whatever_the_fields_hold(request: dict[str, Any]) -> None:
    validate_request(request)


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, ANYTHING), max_size=4))
def test_it_never_raises_whatever_stands_in_a_conversation(blocks: list[Any]) -> None:
    messages = [{"role": role, "content": blocks} for role in ("user", "assistant", "user")]
    validate_request({"messages": messages, "tools": blocks, "system": blocks})


def test_no_nesting_is_too_deep() -> None:
    part: dict[str, Any] = {"type": "text", "text": "deep"}
    for _ in range(5_000):
        part = {"type": "tool_result", "tool_use_id": "t1", "content": [part], "input": part}
    validate_request({"messages": [{"role": "user", "content": [part]}]})


@settings(deadline=None, max_examples=200)
@given(REQUESTS, st.lists(st.tuples(st.integers(0, 8), MESSAGES | st.none()), max_size=12))
def test_remembering_changes_no_verdict(
    messages: list[Message], edits: list[tuple[int, Message | None]]
) -> None:
    validator = RequestValidator()
    current = list(messages)
    for index, replacement in [*edits, (8, None)]:
        request = {"messages": current}
        assert validator.check(request) == validate_request(copy.deepcopy(request))
        at = min(index, len(current))
        current = [*current[:at], *([replacement] if replacement else []), *current[at + 1 :]]


@settings(deadline=None)
@given(REQUESTS)
def test_joined_messages_fare_as_one(messages: list[Message]) -> None:
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            content = [*joined[-1]["content"], *message["content"]]
            joined[-1] = {**message, "content": content}
        else:
            joined.append(message)
    pairs = {
        rule
        for rule in ("tool_use_unanswered", "tool_result_unexpected", "tool_result_late")
        if any(violation.rule == rule for violation in validate_request({"messages": joined}))
    }
    found = {violation.rule for violation in validate_request({"messages": messages})}
    assert pairs == found & {
        "tool_use_unanswered",
        "tool_result_unexpected",
        "tool_result_late",
    }


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Messages that were looked at, rather than remembered."""
    seen: list[object] = []

    def spy(message: object) -> _message_rules.MessageFacts:
        seen.append(message)
        return _message_rules.message_facts(message)

    monkeypatch.setattr(_validate, "message_facts", spy)
    return seen


def turn(number: int) -> list[Message]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


def test_a_growing_conversation_pays_for_what_is_new(checked: list[object]) -> None:
    validator = RequestValidator()
    messages = [{"role": "user", "content": "hi"}, *turn(1)]
    assert validator.check({"messages": messages}) == ()
    checked.clear()
    new = turn(2)
    assert validator.check({"messages": [*messages, *new]}) == ()
    assert checked == new


def test_of_what_left_the_request_only_the_newest_is_remembered(checked: list[object]) -> None:
    validator = RequestValidator()
    turns = [message for number in range(LEFT_MAX) for message in turn(number)]
    messages = [{"role": "user", "content": "hi"}, *turns]
    validator.check({"messages": messages})
    validator.check({"messages": messages[:1]})
    checked.clear()
    validator.check({"messages": messages})
    assert checked == messages[1:-LEFT_MAX]


def test_a_remembered_violation_names_the_place_where_it_stands_now() -> None:
    validator = RequestValidator()
    blank = {"role": "user", "content": " "}
    (first,) = validator.check({"messages": [blank]})
    (second,) = validator.check({"messages": [{"role": "user", "content": "hi"}, blank]})
    assert (first.place, second.place) == ("messages.0.content.0", "messages.1.content.0")
