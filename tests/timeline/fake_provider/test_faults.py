"""Everything that goes wrong on demand, as the real client sees it: whole, streamed, sync, async."""

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
from tests._practice import Practice
from timeline.fake_provider import Call, FakeServer, Fault, Reply

from .requests import request


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
