"""The fixture `practice`: servers of the fake provider on free loopback ports, and clients.

Take it into a folder with `from tests._practice import practice` in its conftest, and mark the tests
`network`.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import anthropic
import attrs
import openai
import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from tests import _http
from tests._google import AsyncGoogle, Google
from tests._sizes import PATIENCE
from timeline.fake_provider import FakeProvider, FakeServer

RETRY_DELAY_SECONDS = 0.01
"""How long a client waits before it tries again: half a second otherwise, and twice that the next time."""
CLIENTS: Final = {
    "anthropic": "client",
    "openai.chat": "openai",
    "openai.responses": "openai",
    "gemini": "google",
}
"""By provider: the method of `Practice` that opens its client; the one with an `a` before it is for asyncio."""


@attrs.define
class Practice:
    """Opens servers and clients; all are closed when the test ends."""

    stack: ExitStack

    def serve(self, **options: Any) -> FakeServer:
        """A running server; `options` are those of `FakeProvider`: responder, window, clock, ..."""
        return self.stack.enter_context(FakeServer(FakeProvider(**options)))

    def client(self, server: FakeServer, **options: Any) -> Anthropic:
        """The real client; it does not retry unless told to."""
        given = _given(server.url, anthropic.DefaultHttpxClient, options)
        return self.stack.enter_context(Anthropic(**given))

    @asynccontextmanager
    async def aclient(self, server: FakeServer, **options: Any) -> AsyncIterator[AsyncAnthropic]:
        """The real async client, for one event loop."""
        given = _given(server.url, anthropic.DefaultAsyncHttpxClient, options)
        async with AsyncAnthropic(**given) as client:
            yield client

    def openai(self, server: FakeServer, **options: Any) -> OpenAI:
        """The same of OpenAI's."""
        given = _given(f"{server.url}/v1", openai.DefaultHttpxClient, options)
        return self.stack.enter_context(OpenAI(**given))

    @asynccontextmanager
    async def aopenai(self, server: FakeServer, **options: Any) -> AsyncIterator[AsyncOpenAI]:
        """The same of OpenAI's."""
        given = _given(f"{server.url}/v1", openai.DefaultAsyncHttpxClient, options)
        async with AsyncOpenAI(**given) as client:
            yield client

    def google(self, server: FakeServer, max_retries: int = 0) -> Google:
        """One that speaks Gemini's API."""
        http = self.stack.enter_context(_http.client(**_google(server.url)))
        return Google(http, max_retries)

    @asynccontextmanager
    async def agoogle(self, server: FakeServer, max_retries: int = 0) -> AsyncIterator[AsyncGoogle]:
        """The same for one event loop."""
        async with _http.async_client(**_google(server.url)) as http:
            yield AsyncGoogle(http, max_retries)


def _google(url: str) -> dict[str, Any]:
    return {"base_url": url, "headers": {"x-goog-api-key": "test"}}


def _given(url: str, http: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    fixed = {"base_url": url, "api_key": "test", "timeout": PATIENCE, "max_retries": 0}
    return {**fixed, "http_client": http(verify=_http.NO_TLS), **options}


@pytest.fixture
def practice(monkeypatch: pytest.MonkeyPatch) -> Iterator[Practice]:
    """Servers and clients of one test."""
    for sdk in ("anthropic", "openai"):
        monkeypatch.setattr(f"{sdk}._base_client.INITIAL_RETRY_DELAY", RETRY_DELAY_SECONDS)
    with ExitStack() as stack:
        yield Practice(stack)
