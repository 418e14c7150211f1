"""Answers through the real client: whole and as a stream, sync and async."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import attrs
import httpx2
import pytest

from blocks import MisuseError
from render import overflow_of
from tests._builders import Clock
from tests._practice import Practice
from tests._table import for_each
from timeline.fake_provider import Call, FakeProvider, FakeServer, Fault, Reply
from timeline.fake_provider.wires._anthropic import events

from .requests import MODEL, TOOL, UNBOUND, assistant, request, result, user

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


@for_each("answer", [None, "It is full.", {"text": "It is full."}], ids=str)
def test_what_is_no_reply_ends_the_test_at_once(practice: Practice, answer: Any) -> None:
    """Most often a `return` that was forgotten."""

    def forgets(_: dict[str, Any]) -> Any:
        return answer

    from anthropic import InternalServerError

    server = practice.serve(responder=forgets)
    with pytest.raises(InternalServerError):
        practice.client(server).messages.create(**request())
    error = server.provider.failures.pop()
    assert isinstance(error, MisuseError)
    assert "forgets must return a Reply or a Fault, not" in str(error)


def test_ids_come_from_the_request_and_none_is_given_twice() -> None:
    """A program that begins anew with the same script goes on with its log: no id of the first time comes again."""

    def ids(provider: FakeProvider, text: str) -> set[str]:
        message = provider.create(request(user(text), tools=[TOOL])).message
        assert message is not None
        return {message["id"], *(b["id"] for b in message["content"] if b["type"] == "tool_use")}

    one, two = (FakeProvider(responder=lambda _: REPLY) for _ in range(2))
    first = ids(one, "Look.")
    assert first == ids(two, "Look.")
    others = [ids(one, "Look."), ids(two, "And now?"), ids(one, "Look.")]
    assert len(set.union(first, *others)) == 3 * 4


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


# Everything that goes wrong on demand, as the real client sees it: whole, streamed, sync, async.


@attrs.define
class Ways:
    """The four ways to make one request."""

    practice: Practice
    server: FakeServer

    def whole(self, **options: Any) -> Any:
        return self.practice.client(self.server, **options).messages.create(**request())

    def streamed(self, **options: Any) -> Any:
        client = self.practice.client(self.server, **options)
        with client.messages.stream(**request()) as stream:
            return stream.get_final_message()

    def awhole(self, **options: Any) -> Any:
        async def ask() -> Any:
            async with self.practice.aclient(self.server, **options) as client:
                return await client.messages.create(**request())

        return asyncio.run(ask())

    def astreamed(self, **options: Any) -> Any:
        async def ask() -> Any:
            async with (
                self.practice.aclient(self.server, **options) as client,
                client.messages.stream(**request()) as stream,
            ):
                return await stream.get_final_message()

        return asyncio.run(ask())

    def all(self) -> Iterator[Callable[..., Any]]:
        return iter((self.whole, self.streamed, self.awhole, self.astreamed))


@pytest.fixture
def ways(practice: Practice) -> Ways:
    return Ways(practice, practice.serve(responder=lambda _: Reply(text="All is well.")))


@pytest.mark.parametrize(
    ("fault", "error", "status", "kind"),
    [
        (Fault.overflow(9_001, 9_000), anthropic.BadRequestError, 400, "invalid_request_error"),
        (Fault.rate_limit(), anthropic.RateLimitError, 429, "rate_limit_error"),
        (Fault.server_error(), anthropic.InternalServerError, 500, "api_error"),
        (Fault.overloaded(), anthropic.OverloadedError, 529, "overloaded_error"),
    ],
    ids=["overflow", "rate_limit", "server_error", "overloaded"],
)
def test_a_request_is_refused(
    ways: Ways, fault: Fault, error: type[anthropic.APIStatusError], status: int, kind: str
) -> None:
    for ask in ways.all():
        ways.server.fault(fault)
        with pytest.raises(error) as caught:
            ask()
        assert (caught.value.status_code, caught.value.type) == (status, kind)
        assert caught.value.request_id
        overflow = overflow_of(status, kind, caught.value.api_message or "")
        assert (overflow is not None) == (status == 400)
        assert ask().content[0].text == "All is well."
    assert not ways.server.refused, "the requests were valid"
    assert len(ways.server.requests) == 8


@pytest.mark.parametrize(
    "fault",
    [Fault.rate_limit(0.01), Fault.server_error(), Fault.overloaded()],
    ids=["rate_limit", "server_error", "overloaded"],
)
def test_the_client_retries_by_itself(ways: Ways, fault: Fault) -> None:
    ways.server.fault(fault)
    assert ways.whole(max_retries=1).content[0].text == "All is well."
    assert [bool(exchange.error) for exchange in ways.server.provider.exchanges] == [True, False]


def test_an_overload_may_come_in_the_middle_of_a_stream(ways: Ways) -> None:
    for ask in (ways.streamed, ways.astreamed):
        ways.server.fault(Fault.overloaded_in_stream())
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask()
        assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    ways.server.fault(Fault.overloaded_in_stream())
    with pytest.raises(anthropic.OverloadedError):
        ways.whole()


def test_a_slow_answer_comes_in_the_end(ways: Ways) -> None:
    for ask in ways.all():
        ways.server.fault(Fault.slow(0.02))
        assert ask().content[0].text == "All is well."
    for ask in ways.all():  # a request that is given up before it has arrived is late, too
        ways.server.fault(Fault.slow(20))
        with pytest.raises(anthropic.APITimeoutError):
            ask(timeout=0.2)


def test_nothing_is_slower_than_the_limit() -> None:
    with pytest.raises(ValueError, match="30"):
        Fault.slow(31)


def test_the_connection_is_cut_in_the_middle(ways: Ways) -> None:
    for ask in (ways.whole, ways.awhole):
        ways.server.fault(Fault.cut())
        with pytest.raises(anthropic.APIConnectionError):
            ask()
    for ask in (ways.streamed, ways.astreamed):
        for after in (0, 4, 1_000):
            ways.server.fault(Fault.cut(after))
            with pytest.raises(httpx2.RemoteProtocolError):
                ask()


def test_what_was_said_before_the_cut_arrives(ways: Ways) -> None:
    ways.server.fault(Fault.cut(after=4))
    seen: list[str] = []
    with ways.practice.client(ways.server).messages.stream(**request()) as stream:
        with pytest.raises(httpx2.RemoteProtocolError):
            seen.extend(event.type for event in stream)
        partial = stream.current_message_snapshot
    assert partial.stop_reason is None
    assert partial.content[0].type == "text"


def test_json_may_be_none(ways: Ways) -> None:
    for ask in ways.all():
        ways.server.fault(Fault.garbled())
        with pytest.raises(json.JSONDecodeError):
            ask()


def test_the_model_may_refuse(ways: Ways) -> None:
    for ask in ways.all():
        ways.server.fault(Fault.refusal())
        message = ask()
        assert message.stop_reason == "refusal"
        assert message.stop_details.type == "refusal"
        assert message.content == []


def test_the_output_may_end_inside_a_call(ways: Ways) -> None:
    call = Call("write_file", {"path": "a.md", "content": "very long " * 50})
    for ask in ways.all():
        ways.server.fault(Fault.max_tokens(call))
        message = ask()
        assert message.stop_reason == "max_tokens"
        cut = message.content[-1]
        assert cut.type == "tool_use"
        assert cut.input["path"] == "a.md"
        assert len(cut.input.get("content", "")) < 500


def test_a_turn_may_pause_and_goes_on_when_sent_back(ways: Ways) -> None:
    for ask in ways.all():
        ways.server.fault(Fault.pause())
        message = ask()
        assert message.stop_reason == "pause_turn"
        asked = request()
        back = [block.to_dict() for block in message.content]
        asked["messages"].append({"role": "assistant", "content": back})
        client = ways.practice.client(ways.server)
        assert client.messages.create(**asked).stop_reason == "end_turn"
    assert not ways.server.refused


def test_the_model_may_say_nothing(ways: Ways) -> None:
    for ask in ways.all():
        ways.server.fault(Fault.empty())
        message = ask()
        assert (message.content, message.stop_reason) == ([], "end_turn")


def test_faults_queue_up_and_invalid_requests_do_not_use_them(ways: Ways) -> None:
    ways.server.fault(Fault.empty(), Fault.overloaded())
    client = ways.practice.client(ways.server)
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model="claude-sonnet-5-5", max_tokens=10, messages=[])
    assert ways.server.provider.faults_left == 2
    assert ways.whole().content == []
    with pytest.raises(anthropic.OverloadedError):
        ways.whole()
    [refused] = ways.server.refused
    assert refused.request["messages"] == []


def test_a_damaged_answer_does_not_use_up_the_script(practice: Practice) -> None:
    server = practice.serve(responder=[Fault.cut(), Fault.slow(0.01), Reply(text="Hello.")])
    message = practice.client(server, max_retries=1).messages.create(**request())
    assert message.content[0].to_dict()["text"] == "Hello."


def test_there_is_no_other_fault() -> None:
    with pytest.raises(MisuseError, match="no fault 'flood'; there are overflow, "):
        Fault.named("flood")


# Signed thinking: it comes back as it was, and where it is bound, after the same prompt.


THINKS = [
    Reply(thinking=f"Thought {number}.", calls=[Call("read_file", {"path": f"{number}.txt"})])
    for number in range(6)
]


def conversation(provider: FakeProvider, rounds: int, model: str = MODEL) -> dict[str, Any]:
    """A request after some rounds, each with thinking."""
    asked = request(user("Look."), model=model, tools=[TOOL], system="You look at files.")
    for _ in range(rounds):
        message = provider.create(asked).message
        assert message is not None
        contents = message["content"]
        asked["messages"] = [
            *asked["messages"],
            assistant(*contents),
            result(contents[-1]["id"], "what it says"),
        ]
    return asked


def words(provider: FakeProvider, asked: dict[str, Any]) -> str:
    """Of the refusal; "" when there is none."""
    error = provider.create(asked).error
    return error.message if error else ""


def without(asked: dict[str, Any], *rounds: int) -> dict[str, Any]:
    """The request without the thinking of some rounds."""
    messages = list(asked["messages"])
    for number in rounds:
        index = 1 + 2 * number
        messages[index] = assistant(*messages[index]["content"][1:])
    return {**asked, "messages": messages}


def edited(asked: dict[str, Any]) -> dict[str, Any]:
    """The request with another result in the first round."""
    call_id = asked["messages"][1]["content"][-1]["id"]
    messages = [*asked["messages"][:2], result(call_id, "pruned"), *asked["messages"][3:]]
    return {**asked, "messages": messages}


def test_the_real_client_sends_it_back(practice: Practice) -> None:
    server = practice.serve(responder=THINKS)
    client = practice.client(server)
    asked = request(user("Look."), tools=[TOOL])
    for _ in range(3):
        message = client.messages.create(**asked)
        asked["messages"].append(message.to_param())
        asked["messages"].append(result(message.to_dict()["content"][-1]["id"]))
    assert not server.refused
    asked["messages"][0] = user("Look again.")
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        client.messages.create(**asked)


def test_an_edit_before_bound_thinking_is_refused() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 3)
    assert not words(provider, asked)
    for changed in (edited(asked), {**asked, "system": "Else."}, {**asked, "tools": []}):
        assert "The block is bound to a different conversation." in words(provider, changed)
    assert words(provider, edited(asked)).startswith(
        "messages.3.content.0: Invalid `signature` in `thinking` block."
    )


def test_an_edit_behind_all_thinking_is_fine() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 1)
    assert not words(provider, edited(asked))


def test_cache_marks_and_the_form_of_content_are_no_edit() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 2)
    mark = {"cache_control": {"type": "ephemeral"}}
    first = {**asked["messages"][0]["content"][0], **mark}
    answer = asked["messages"][2]["content"][0]
    long = {**answer, "content": [{"type": "text", "text": answer["content"]}], "is_error": False}
    messages = [
        {"role": "user", "content": [first]},
        asked["messages"][1],
        {"role": "user", "content": [long]},
        *asked["messages"][3:],
    ]
    system = [{"type": "text", "text": asked["system"], **mark}]
    assert not words(provider, {**asked, "messages": messages, "system": system})


def test_thinking_may_go_at_either_end_or_all_of_it() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 4)
    for gone in ((0,), (0, 1), (3,), (2, 3), (0, 1, 2, 3)):
        assert not words(provider, without(asked, *gone)), gone


def test_thinking_may_not_go_in_the_middle_nor_come_back() -> None:
    provider = FakeProvider(responder=[*THINKS])
    asked = conversation(provider, 3)
    assert "different conversation" in words(provider, without(asked, 1))
    stripped = without(asked, 0, 1, 2)
    message = provider.create(stripped).message
    assert message is not None
    thought = message["content"]
    more = [assistant(*thought), result(thought[-1]["id"])]
    kept = {**asked, "messages": [*stripped["messages"], *more]}
    assert not words(provider, kept)
    assert "different conversation" in words(
        provider, {**asked, "messages": [*asked["messages"], *more]}
    )


def test_the_client_may_ask_to_have_it_dropped() -> None:
    provider = FakeProvider(responder=THINKS)
    binding = {"prefix_mismatch_behavior": "drop_block"}
    asked = edited(conversation(provider, 3))
    assert not words(
        provider, {**asked, "thinking": {"type": "adaptive", "block_binding": binding}}
    )


@for_each("model", [MODEL, UNBOUND])
def test_changed_thinking_is_refused_by_every_model(model: str) -> None:
    provider = FakeProvider(responder=THINKS)
    asked = conversation(provider, 2, model)
    for index, expected in ((1, "messages.1.content.0: Invalid `signature`"), (3, "latest")):
        messages = list(asked["messages"])
        thought, *rest = messages[index]["content"]
        messages[index] = assistant({**thought, "thinking": "Something else."}, *rest)
        assert expected in words(provider, {**asked, "messages": messages})


@for_each("signature", ["", "c2ln", "no base64!", "W10="])
def test_thinking_that_the_provider_never_signed_is_refused(signature: str) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": signature}
    asked = request(user("a"), assistant(thought, {"type": "text", "text": "b"}), user("c"))
    assert words(FakeProvider(), asked)


def test_unbound_thinking_survives_an_edit() -> None:
    provider = FakeProvider(responder=THINKS)
    assert not words(provider, edited(conversation(provider, 3, UNBOUND)))


def test_thinking_of_another_model_is_dropped_in_silence() -> None:
    provider = FakeProvider(responder=THINKS)
    asked = edited(conversation(provider, 3, UNBOUND))
    assert not words(provider, {**asked, "model": MODEL})


def test_thinking_that_was_cut_off_has_no_signature() -> None:
    provider = FakeProvider(responder=[Reply(thinking="Hm. " * 200)])
    message = provider.create(request(max_tokens=20)).message
    assert message is not None
    [thought] = message["content"]
    assert thought["signature"] == ""
    assert message["stop_reason"] == "max_tokens"


# Usage: what the simulated prompt cache wrote and read, in the provider's fields.


LONG = "A rule that the agent has to follow at all times. " * 100


def marked(text: str, **control: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", **control}}


def usage(provider: FakeProvider, asked: dict[str, Any]) -> dict[str, Any]:
    message = provider.create(asked).message
    assert message is not None
    found: dict[str, Any] = message["usage"]
    return found


def test_the_client_sees_a_write_and_then_a_read(practice: Practice) -> None:
    client = practice.client(practice.serve(responder=lambda _: Reply(text="Yes.")))
    asked = request(system=[marked(LONG, ttl="1h")], tools=[TOOL])
    first, second = (client.messages.create(**asked).usage for _ in range(2))
    assert first.cache_creation is not None
    written = first.cache_creation.ephemeral_1h_input_tokens
    assert written == first.cache_creation_input_tokens
    assert written > 1_000
    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert second.cache_read_input_tokens == written
    assert first.input_tokens == second.input_tokens < 20


def test_the_three_numbers_add_up_to_the_prompt() -> None:
    provider = FakeProvider()
    history = [
        {"role": "user", "content": [marked(LONG)]},
        assistant({"type": "text", "text": "I"}),
    ]
    for number in range(3):
        asked = request(*history, user(f"Step {number}."), tools=[TOOL])
        found = usage(provider, asked)
        total = sum(
            found[name]
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        )
        assert total == provider.count(asked)


def test_an_entry_dies_after_its_time() -> None:
    clock = Clock()
    provider = FakeProvider(clock=clock)
    asked = request({"role": "user", "content": [marked(LONG)]})
    reads = []
    for seconds in (0, 299, 299, 301):
        clock.wait(seconds)
        reads.append(usage(provider, asked)["cache_read_input_tokens"] > 0)
    assert reads == [False, True, True, False]


def test_each_model_has_a_cache_of_its_own() -> None:
    provider = FakeProvider()
    asked = request(system=[marked(LONG)])
    usage(provider, asked)
    assert usage(provider, {**asked, "model": UNBOUND})["cache_read_input_tokens"] == 0
    assert usage(provider, asked)["cache_read_input_tokens"] > 0


def test_a_refused_request_writes_nothing() -> None:
    provider = FakeProvider(window=100)
    asked = request(system=[marked(LONG)])
    assert provider.create(asked).error
    provider.window = None
    assert usage(provider, asked)["cache_read_input_tokens"] == 0


def test_automatic_caching_marks_the_last_block() -> None:
    provider = FakeProvider()
    asked = request(user(LONG), cache_control={"type": "ephemeral"})
    assert usage(provider, asked)["cache_creation_input_tokens"] > 1_000
    assert usage(provider, asked)["input_tokens"] == 0
