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
"""Headers of one connection (RFC 9110, 7.6.1), not of what it carries."""
_CONNECT_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 60.0
"""How long a connection is kept that nothing is asked on; a client's tools take their time."""
Headers = list[tuple[str, str]]


def upstreams_of(given: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """Where requests go, by maker.

    Raises:
        MisuseError: it is no URL, or is of no maker that is known.
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
    """The providers behind the gateway; nothing goes anywhere else."""

    urls: Mapping[str, str]
    _client: httpx2.AsyncClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # How long an answer may take is for the client to say: it hangs up.
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS),
            follow_redirects=False,
            trust_env=True,
        )

    def url(self, path: str, query: str, headers: Mapping[str, str]) -> str:
        """Where a request goes."""
        base = self.urls[maker_of(path, headers)]
        return f"{base}{path}{'?' * bool(query)}{query}"

    async def send(
        self,
        method: str,
        url: str,
        headers: Headers,
        content: "bytes | AsyncIterator[bytes] | None",
    ) -> httpx2.Response:
        """The response, its body still to come.

        Raises:
            httpx2.TransportError: there is none.
        """
        request = self._client.build_request(method, url, headers=headers, content=content)
        for name in ("accept", "accept-encoding", "connection", "user-agent"):
            if all(known != name for known, _ in headers) and name in request.headers:
                del request.headers[name]  # the library's own; the client said none
        return await self._client.send(request, stream=True)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def onward(headers: Iterable[tuple[str, str]], *without: str) -> Headers:
    """What goes on of a request's headers; not what is of one connection, or for us."""
    left_out = {*_HOP, *without, "host", HEADER}
    return [(name, value) for name, value in headers if name.lower() not in left_out]


def back(headers: httpx2.Headers) -> list[tuple[bytes, bytes]]:
    """What goes back of a response's headers."""
    return [
        (name.lower(), value) for name, value in headers.raw if name.lower().decode() not in _HOP
    ]


class Relayed(StreamingResponse):
    """A response of the provider's, passed on as it comes; where it breaks off, so does this."""

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
    finally:  # a client that has read the last event may hang up before the provider does
        over()
        await response.aclose()
