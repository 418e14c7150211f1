"""What goes wrong upstream, a client of the gateway sees as it would have seen it without."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests._table import for_each
from timeline.fake_provider import Fault

from ._two_ways import KEY, WIRES, Ways, ways

__all__ = ["ways"]

pytestmark = pytest.mark.network

FAULTS: dict[str, Callable[[], Fault]] = {
    "nothing": Fault,
    "rate limit": lambda: Fault.rate_limit(retry_after=7),
    "server error": Fault.server_error,
    "overloaded": Fault.overloaded,
    "too long": Fault.overflow,
    "overloaded in the stream": Fault.overloaded_in_stream,
    "cut": Fault.cut,
    "cut at once": lambda: Fault.cut(after=0),
    "garbled": Fault.garbled,
    "late": lambda: Fault.slow(0.3),
    "refusal": Fault.refusal,
    "at its limit": Fault.max_tokens,
    "empty": Fault.empty,
}


@for_each("fault", FAULTS)
@for_each("wire", WIRES)
def test_status_headers_and_bytes_are_those_of_the_upstream(
    ways: Ways, wire: str, fault: str
) -> None:
    for is_streamed in (True, False):
        ways.fault(FAULTS[fault]())
        direct, through = ways.both(WIRES[wire], stream=is_streamed)
        assert through == direct


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_fault_the_same_request_is_answered_as_if_nothing_had_happened(
    ways: Ways, wire: str
) -> None:
    faults = (Fault.overloaded(), Fault.cut(), Fault.garbled())
    ways.fault(*faults)
    for _ in faults:
        ways.both(WIRES[wire], stream=True)
    direct, through = ways.both(WIRES[wire], stream=True)
    assert through == direct
    assert direct.status == 200
    assert [e.request for e in ways.behind.provider.exchanges] == [
        e.request for e in ways.direct.provider.exchanges
    ]


def _anthropic(url: str, retries: int) -> Any:
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=retries) as client:
        request: Any = WIRES["messages"].body
        with client.messages.stream(**request) as stream:
            return stream.get_final_message()


def _anthropic_whole(url: str, retries: int) -> Any:
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=retries) as client:
        request: Any = WIRES["messages"].body
        return client.messages.create(**request)


def _aanthropic(url: str, retries: int) -> Any:
    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key=KEY, max_retries=retries
        ) as client:
            request: Any = WIRES["messages"].body
            async with client.messages.stream(**request) as stream:
                return await stream.get_final_message()

    return asyncio.run(ask())


def _responses(url: str, retries: int) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=retries) as client:
        request: Any = WIRES["responses"].body
        with client.responses.stream(**request) as stream:
            return stream.get_final_response()


def _chat(url: str, retries: int) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=retries) as client:
        request: Any = WIRES["chat"].body
        return client.chat.completions.create(**request)


SDKS = {
    "anthropic": _anthropic,
    "anthropic, whole": _anthropic_whole,
    "anthropic, async": _aanthropic,
    "openai, responses": _responses,
    "openai, chat": _chat,
}


def outcome(ask: Callable[[str, int], Any], url: str, retries: int = 0) -> tuple[str, Any]:
    """What comes of asking with an SDK: the answer, or its error."""
    try:
        return "answered", ask(url, retries).model_dump()
    except (
        anthropic.APIError,
        openai.APIError,
        httpx2.HTTPError,
        RuntimeError,
        ValueError,
    ) as error:
        return type(error).__name__, getattr(error, "body", str(error))


@for_each("fault", FAULTS)
def test_a_providers_own_client_raises_what_it_would_have_raised(ways: Ways, fault: str) -> None:
    for name, ask in SDKS.items():
        ways.fault(FAULTS[fault]())
        through = outcome(ask, ways.proxy)
        assert (name, through) == (name, outcome(ask, ways.direct.url))


@pytest.mark.parametrize("sdk", SDKS)
def test_a_providers_own_client_tries_again_as_often_as_it_would_have(ways: Ways, sdk: str) -> None:
    ways.fault(Fault.rate_limit(retry_after=0.01), Fault.rate_limit(retry_after=0.01))
    through = outcome(SDKS[sdk], ways.proxy, retries=2)
    assert through == outcome(SDKS[sdk], ways.direct.url, retries=2)
    assert through[0] == "answered"
    assert len(ways.behind.requests) == len(ways.direct.requests) == 3
