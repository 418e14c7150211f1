"""What the server refuses, through the real client where that lets it pass."""

from typing import Any

import anthropic
import pytest

from render import Model, overflow_of
from tests import _http
from tests._practice import Practice
from tests._table import for_each
from timeline.fake_provider import Exchange, FakeProvider, Fault, Reply

from .requests import OLD, TOOL, assistant, request, result, user

CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}


def refused(asked: dict[str, Any], **options: Any) -> tuple[int, str]:
    """Status and words of the refusal."""
    exchange: Exchange = FakeProvider(**options).create(asked)
    assert exchange.error is not None
    return exchange.error.status, exchange.error.message


def test_the_client_hears_the_providers_words(practice: Practice) -> None:
    server = practice.serve()
    asked = request(user("Look."), assistant(CALL), user("And?"))
    with pytest.raises(anthropic.BadRequestError) as caught:
        practice.client(server).messages.create(**asked)
    error = caught.value
    assert error.type == "invalid_request_error"
    assert error.api_message is not None
    assert "`tool_use` ids were found without `tool_result` blocks immediately after" in (
        error.api_message
    )
    assert isinstance(error.body, dict)
    assert error.body["request_id"] == error.request_id
    [exchange] = server.refused
    assert exchange.request == asked


def test_counting_refuses_the_same(practice: Practice) -> None:
    client = practice.client(practice.serve())
    with pytest.raises(anthropic.BadRequestError, match="at least one message is required"):
        client.messages.count_tokens(model="claude-sonnet-5-5", messages=[])


@for_each(
    ("asked", "status", "words"),
    [
        ({}, 400, "max_tokens: Field required"),
        (request(temperature=1.0), 400, "temperature: Extra inputs are not permitted"),
        (request(model=7), 400, "model: Input should be a valid string"),
        (request(max_tokens=-1), 400, "max_tokens: Input should be greater"),
        (request(max_tokens=10**6), 400, "1000000 > 128000, which is the maximum"),
        (request(model="gpt-6"), 404, "model: gpt-6"),
        (request(messages="Hello."), 400, "messages: Input should be a valid list"),
        (request(user(" ")), 400, "text content blocks must contain non-whitespace text"),
        (request(user("a"), assistant({"type": "text", "text": "b"})), 400, "prefill"),
        (request(user("a"), result("toolu_9")), 400, "unexpected `tool_use_id`"),
        (request(tools=[TOOL, TOOL]), 400, "Tool names must be unique"),
        (request(user("x" * (33 * 1024 * 1024))), 413, "Request exceeds the maximum size"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_breaks_a_rule(asked: dict[str, Any], status: int, words: str) -> None:
    found, message = refused(asked)
    assert found == status
    assert words in message


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x-api-key": "any"}, 400),
        ({"x-api-key": "any", "anthropic-version": "2026-10-21"}, 200),
    ],
)
def test_a_key_and_a_version_are_required(
    practice: Practice, headers: dict[str, str], status: int
) -> None:
    url = f"{practice.serve().url}/v1/messages"
    assert _http.post(url, json=request(), headers=headers).status_code == status


def test_what_is_no_json_is_refused(practice: Practice) -> None:
    client = practice.client(practice.serve())
    for body in (b"{", b"[]", b"[" * 100_000):
        with pytest.raises(anthropic.BadRequestError):
            client.post("/v1/messages", cast_to=object, content=body)


def test_a_body_that_is_too_large_is_not_taken_into_memory(practice: Practice) -> None:
    client = practice.client(practice.serve())
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.post("/v1/messages", cast_to=object, content=b" " * (2**26 + 1))
    assert refused.value.status_code == 413


def test_an_unknown_path_is_not_found(practice: Practice) -> None:
    client = practice.client(practice.serve())
    with pytest.raises(anthropic.NotFoundError):
        client.get("/v1/nothing", cast_to=object)
    with pytest.raises(anthropic.NotFoundError, match="model: claude-7"):
        client.models.retrieve("claude-7")


def test_models_of_our_own_may_be_added() -> None:
    small = Model(name="small", tokens_window=1_000)
    provider = FakeProvider(responder=[Reply(text="Hello.")], models=(small,))
    exchange = provider.create(request(model="small"))
    assert exchange.message is not None
    assert exchange.message["model"] == "small"
    assert (
        "1000 maximum" in refused(request(user("a b " * 1_000), model="small"), models=(small,))[1]
    )


# The window.


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(practice: Practice) -> None:
    client = practice.client(practice.serve(window=500))
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**request(user("word " * 1_000)))
    overflow = overflow_of(400, caught.value.type or "", caught.value.api_message or "")
    assert overflow is not None
    assert overflow.tokens_max == 500
    assert overflow.tokens is not None
    assert 1_000 < overflow.tokens < 2_000


def test_a_newer_model_stops_where_the_window_ends() -> None:
    provider = FakeProvider(responder=[Reply(text="word " * 1_000)], window=500)
    message = provider.create(request()).message
    assert message is not None
    assert message["stop_reason"] == "model_context_window_exceeded"
    assert 400 < message["usage"]["output_tokens"] < 500


def test_an_older_model_wants_room_for_all_that_it_may_say() -> None:
    asked = request(model=OLD, max_tokens=1_000)
    status, message = refused(asked, window=500)
    assert (status, "exceed context limit" in message) == (400, True)
    overflow = overflow_of(400, "invalid_request_error", message)
    assert overflow is not None
    assert overflow.tokens_max == 500
    assert FakeProvider(window=500).create({**asked, "max_tokens": 100}).message


def test_the_provider_may_count_differently() -> None:
    asked = request(user("Why does the nightly job fail? " * 20))
    ours, theirs = FakeProvider().count(asked), FakeProvider(factor=1.3).count(asked)
    assert isinstance(ours, int)
    assert theirs == pytest.approx(1.3 * ours, rel=0.05)


def test_a_fault_that_refuses_is_not_the_requests() -> None:
    provider = FakeProvider()
    provider.fault(Fault.overflow())
    exchange = provider.create(request())
    assert exchange.error
    assert exchange.fault
