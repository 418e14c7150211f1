"""Answers through the real client: whole and as a stream, sync and async."""

import asyncio
from typing import Any

import pytest

from tests._practice import Practice
from timeline.fake_provider import Call, FakeProvider, Reply
from timeline.fake_provider.wires._anthropic import events

from .requests import TOOL, request, user

REPLY = Reply(
    thinking="The log may tell. " * 10,
    text="I look at the log, at both of them, first one and then the other.",
    calls=[Call("read_file", {"path": "log/1.txt"}), Call("read_file", {"path": "лог/2.txt"})],
)


def shape(message: Any) -> list[tuple[str, Any]]:
    said = {"text": "text", "thinking": "thinking", "tool_use": "input"}
    return [(block.type, getattr(block, said[block.type])) for block in message.content]


EXPECTED = [
    ("thinking", REPLY.thinking),
    ("text", REPLY.text),
    ("tool_use", {"path": "log/1.txt"}),
    ("tool_use", {"path": "лог/2.txt"}),
]


def test_a_reply_arrives_whole(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY])
    message = practice.client(server).messages.create(**request(tools=[TOOL]))
    assert shape(message) == EXPECTED
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens > 30
    assert len({block.id for block in message.content if block.type == "tool_use"}) == 2
    assert server.requests == [request(tools=[TOOL])]
    assert not server.refused


def test_a_stream_adds_up_to_the_same(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY, REPLY])
    client = practice.client(server)
    whole = client.messages.create(**request(tools=[TOOL]))
    with client.messages.stream(**request(tools=[TOOL])) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_message()
    assert shape(message) == EXPECTED
    assert message.stop_reason == "tool_use"
    assert message.usage == whole.usage
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    thoughts = [block.signature for block in message.content if block.type == "thinking"]
    assert thoughts == [block.signature for block in whole.content if block.type == "thinking"]


def test_the_async_client_gets_the_same(practice: Practice) -> None:
    server = practice.serve(responder=[REPLY, REPLY])

    async def ask() -> tuple[Any, Any]:
        async with practice.aclient(server) as client:
            whole = await client.messages.create(**request())
            async with client.messages.stream(**request()) as stream:
                return whole, await stream.get_final_message()

    for message in asyncio.run(ask()):
        assert shape(message) == EXPECTED


def test_the_events_come_in_the_providers_order() -> None:
    exchange = FakeProvider(responder=[Reply(text="Hello.", calls=[Call("f")])]).create(request())
    assert exchange.message is not None
    assert exchange.answer is not None
    sent = list(events(exchange.message, exchange.answer.drafts))
    assert [event["type"] for event in sent] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_a_function_may_be_the_model(practice: Practice) -> None:
    server = practice.serve(
        responder=lambda asked: Reply(text=f"{len(asked['messages'])} messages")
    )
    client = practice.client(server)
    answer = client.messages.create(**request())
    assert answer.content[0].to_dict() == {"type": "text", "text": "1 messages"}


def test_what_the_function_raises_ends_the_test(practice: Practice) -> None:
    def broken(_: dict[str, Any]) -> Reply:
        raise ZeroDivisionError

    from anthropic import InternalServerError

    server = practice.serve(responder=broken)
    with pytest.raises(InternalServerError):
        practice.client(server).messages.create(**request())
    assert isinstance(server.provider.failures.pop(), ZeroDivisionError)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_ends_at_max_tokens(practice: Practice, *, stream: bool) -> None:
    server = practice.serve(responder=[Reply(text="word " * 500, calls=[Call("f", {"a": "b"})])])
    client = practice.client(server)
    asked = request(max_tokens=100)
    if stream:
        with client.messages.stream(**asked) as opened:
            message = opened.get_final_message()
    else:
        message = client.messages.create(**asked)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 100
    [block] = message.content
    assert block.type == "text"
    assert 0 < len(block.text) < 2_500


def test_no_output_at_all_only_warms_the_cache(practice: Practice) -> None:
    server = practice.serve(responder=[Reply(text="Hello.")])
    client = practice.client(server)
    assert client.messages.create(**request(max_tokens=0)).content == []
    assert client.messages.create(**request()).content


def test_an_answer_may_be_late(practice: Practice) -> None:
    from anthropic import APITimeoutError

    server = practice.serve(responder=[Reply(text="At last.", delay_seconds=20)])
    with pytest.raises(APITimeoutError):
        practice.client(server, timeout=0.2).messages.create(**request())


def test_models_are_listed_with_the_window_of_the_server(practice: Practice) -> None:
    client = practice.client(practice.serve(window=30_000))
    models = {model.id: model for model in client.models.list()}
    assert models["claude-opus-4-5"].max_input_tokens == 30_000
    assert models["claude-opus-4-5"].line == "opus"
    dated = client.models.retrieve("claude-opus-4-5-20251101")
    assert dated == models["claude-opus-4-5"]


def test_counting_agrees_with_usage(practice: Practice) -> None:
    server = practice.serve()
    client = practice.client(server)
    asked = request(user("Why does the nightly job fail?"), tools=[TOOL], system="You help.")
    counted = client.messages.count_tokens(
        **{name: asked[name] for name in ("model", "messages", "tools", "system")}
    )
    assert counted.input_tokens == client.messages.create(**asked).usage.input_tokens
    assert server.requests == [asked]
