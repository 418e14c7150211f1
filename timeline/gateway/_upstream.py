"""The connection to the provider: forwards requests byte for byte, and streams answers back as they arrive."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final

import attrs
import httpx2
from starlette.responses import StreamingResponse

from blocks import MisuseError, in_words
from timeline.gateway._apis import maker_of
from timeline.gateway.clients import HEADER

DEFAULTS: Final[Mapping[str, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
}
_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that concern one connection (RFC 9110, 7.6.1) and are not forwarded."""
_CONNECT_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 60.0
"""Seconds for which an idle connection is kept open; a client's tools may take long."""
Headers = list[tuple[str, str]]


def upstreams_of(given: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """The URLs of the providers, by vendor.

    Raises:
        MisuseError: it is not a URL, or its vendor is not known.
    """
    if given is None:
        return DEFAULTS
    named = dict.fromkeys(DEFAULTS, given) if isinstance(given, str) else {**DEFAULTS, **given}
    for maker, url in named.items():
        if maker not in DEFAULTS:
            raise MisuseError(f"upstream: no maker {in_words(maker)}; known: {', '.join(DEFAULTS)}")
        if not url.startswith(("http://", "https://")):
            raise MisuseError(
                f"upstream: {in_words(url)} is no URL: it begins with http:// or https://"
            )
    return {maker: url.rstrip("/") for maker, url in named.items()}


@attrs.define
class Upstream:
    """Sends requests to the providers, and nowhere else."""

    urls: Mapping[str, str]
    _client: httpx2.AsyncClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # No read timeout: the client decides how long it waits.
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS),
            follow_redirects=False,
            trust_env=True,
        )

    def url(self, path: str, query: str, headers: Mapping[str, str]) -> str:
        """The provider's URL for a request."""
        base = self.urls[maker_of(path, headers)]
        return f"{base}{path}{'?' * bool(query)}{query}"

    async def send(
        self,
        method: str,
        url: str,
        headers: Headers,
        content: "bytes | AsyncIterator[bytes] | None",
    ) -> httpx2.Response:
        """The provider's response; its body is not read yet.

        Raises:
            httpx2.TransportError: no response was received.
        """
        request = self._client.build_request(method, url, headers=headers, content=content)
        for name in ("accept", "accept-encoding", "connection", "user-agent"):
            if all(known != name for known, _ in headers) and name in request.headers:
                del request.headers[name]  # a default of the library that the client did not send
        return await self._client.send(request, stream=True)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def onward(headers: Iterable[tuple[str, str]], *without: str) -> Headers:
    """The request headers to forward, without headers of one connection, those in `without`, and the gateway's own."""
    left_out = {*_HOP, *without, "host", HEADER}
    return [(name, value) for name, value in headers if name.lower() not in left_out]


def back(headers: httpx2.Headers) -> list[tuple[bytes, bytes]]:
    """The response headers to return, without headers of one connection."""
    return [
        (name.lower(), value) for name, value in headers.raw if name.lower().decode() not in _HOP
    ]


class Relayed(StreamingResponse):
    """A provider's response, passed on as it arrives. If it breaks off, this response breaks off, too."""

    def __init__(
        self, response: httpx2.Response, seen: Callable[[bytes], None], over: Callable[[], None]
    ) -> None:
        super().__init__(_chunks(response, seen, over), status_code=response.status_code)
        self.raw_headers = back(response.headers)


async def _chunks(
    response: httpx2.Response, seen: Callable[[bytes], None], over: Callable[[], None]
) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            seen(chunk)
            yield chunk
    finally:  # also if the client hangs up before the provider ends
        over()
        await response.aclose()
