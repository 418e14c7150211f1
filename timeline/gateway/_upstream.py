"""The connection to the provider: forwards requests byte for byte, and streams answers back as they arrive.

It reaches the provider as the client would without a gateway: through the same proxy, with the same certificates, and
whether or not the client takes its base URL to contain the version of the API.
"""

import asyncio
import logging
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.request import getproxies

import attrs
import httpx2
from starlette.responses import StreamingResponse

from blocks import MisuseError, in_words
from timeline._serving import is_loopback
from timeline.gateway._request import ANTHROPIC_HEADERS, BARE, VERSION, api_at, maker_of
from timeline.gateway.clients import HEADER, VENDORS

log = logging.getLogger("foldline.gateway")

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
_LIMITS: Final = httpx2.Limits(max_connections=None, keepalive_expiry=60.0)
"""An idle connection is kept open for a minute, because a client's tools may take long."""
Headers = list[tuple[str, str]]


_HOST: Final = r"(\[[0-9a-f:.]+\]|[^\s/?#:@\[\]]+)(:\d+)?"
_BASE: Final = re.compile(rf"https?://([^\s/?#@]*@)?{_HOST}(/[^\s?#]*)?", re.IGNORECASE)


def upstreams_of(urls: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """The URLs of the providers, by vendor, without the version of the API.

    Raises:
        MisuseError: it is not a URL, or its vendor is not known.
    """
    if urls is None:
        return VENDORS
    servers = dict.fromkeys(VENDORS, urls) if isinstance(urls, str) else {**VENDORS, **urls}
    for maker, url in servers.items():
        if maker not in VENDORS:
            raise MisuseError(f"upstream: no vendor {in_words(maker)}; known: {', '.join(VENDORS)}")
        if not _BASE.fullmatch(url):
            raise MisuseError(
                f"upstream: {in_words(url)} is not a URL that begins with http:// or https:// and a host, without ? and #"
            )
        if api := api_at(url, {ANTHROPIC_HEADERS[0]: ""}):
            base = url.removesuffix(api.path)
            raise MisuseError(f"upstream: {in_words(url)} is the address of calls; give {base}")
    return {maker: url.rstrip("/").removesuffix(VERSION) for maker, url in servers.items()}


_REPEATED: Final = re.compile(rf"^({VERSION})+(?=/|$)")
_OTHER_VERSION: Final = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?$")


def joined(base: str, path: str) -> str:
    """The URL of a request at a base URL. Clients disagree on whether a base URL contains the version, so
    `/v1/messages`, `/v1/v1/messages` and `/messages` are one path; a base with another version keeps that."""
    path = _REPEATED.sub(VERSION, path)
    if path.removeprefix("/").partition("/")[0] in BARE:
        path = VERSION + path
    return base + (path.removeprefix(VERSION) if _OTHER_VERSION.search(base) else path)


# The user's network.

_FOLDERS: Final = "SSL_CERT_DIR"
"""The only one of these variables that may name several."""
CERTIFICATES: Final = (
    "SSL_CERT_FILE",  # OpenSSL, X509_STORE_set_default_paths(3)
    _FOLDERS,
    "REQUESTS_CA_BUNDLE",  # requests, "SSL Cert Verification"
    "NODE_EXTRA_CA_CERTS",  # Node.js, "Command-line API"; Claude Code and opencode, "Network"
    "CODEX_CA_CERTIFICATE",  # Codex, codex-client/src/custom_ca.rs
)
"""Variables that name certificates to trust, each with who defines it. All of them add to those of the system, as in
Node.js and in Codex: the client that comes may honour any of them, and none trusts less for it."""
CLIENT_CERTIFICATE: Final = (
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
)
"""Variables with the certificate that a client shows to the server (Claude Code, "Network configuration")."""


def trusted(environment: Mapping[str, str]) -> ssl.SSLContext:
    """The certificates that a client with this environment would trust, and the one that it would show. A file that
    cannot be read is left out with a warning, as clients leave it out whose variable it is not."""
    context = httpx2.create_ssl_context(trust_env=False)
    for name in CERTIFICATES:
        value = environment.get(name, "")
        for path in filter(None, value.split(os.pathsep) if name == _FOLDERS else [value]):
            try:
                if Path(path).is_dir():
                    context.load_verify_locations(capath=path)
                else:
                    context.load_verify_locations(cafile=path)
            except OSError as error:
                log.warning("%s=%s adds no certificate: %s", name, path, error.strerror or error)
    certificate, key, password = (environment.get(name) or None for name in CLIENT_CERTIFICATE)
    if certificate:
        try:
            context.load_cert_chain(certificate, key, password or "")
        except OSError as error:
            log.warning("%s cannot be shown: %s", CLIENT_CERTIFICATE[0], error.strerror or error)
    return context


def proxy_for(url: httpx2.URL) -> str | None:
    """The proxy through which the user's settings lead to a server; None: there is none, as for this machine."""
    proxies = getproxies()
    direct = filter(None, re.split(r"[,\s]+", proxies.get("no", "")))
    if is_loopback(url.host) or any(_is_meant(url.host, word) for word in direct):
        return None
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _is_meant(host: str, word: str) -> bool:
    """Whether a word of `NO_PROXY` means a host: `*`, the host, a domain in any notation, or a network."""
    try:
        return ip_address(host) in ip_network(word.strip("[]"), strict=False)
    except ValueError:
        name = word.lstrip("*").lstrip(".").partition(":")[0].lower()
        return word == "*" or (bool(name) and f".{host}".endswith(f".{name}"))


@attrs.define
class Upstream:
    """Sends requests to the providers, and nowhere else."""

    urls: Mapping[str, str]
    _client: httpx2.AsyncClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        context = trusted(os.environ)
        # No read timeout: the client decides how long it waits.
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            limits=_LIMITS,
            follow_redirects=False,
            verify=context,
            trust_env=False,
            mounts={
                f"{url.scheme}://{url.netloc.decode()}": _through(proxy, context)
                for url in map(httpx2.URL, self.urls.values())
                if (proxy := proxy_for(url))
            },
        )

    def serves(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a request has a server: that of its vendor, or the one for all."""
        return maker_of(path, headers) in self.urls or len({*self.urls.values()}) == 1

    def url(self, path: str, query: str, headers: Mapping[str, str]) -> str:
        """The provider's URL for a request."""
        base = self.urls.get(maker_of(path, headers)) or next(iter(self.urls.values()))
        return f"{joined(base, path)}{'?' * bool(query)}{query}"

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
            if all(header != name for header, _ in headers) and name in request.headers:
                del request.headers[name]  # a default of the library that the client did not send
        try:
            return await self._client.send(request, stream=True)
        except (
            ssl.SSLError
        ) as error:  # an alert after the handshake, such as a missing client certificate
            raise httpx2.ReadError(str(error)) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _through(proxy: str, context: ssl.SSLContext) -> httpx2.AsyncHTTPTransport:
    try:
        settings = httpx2.Proxy(proxy, ssl_context=context if proxy.startswith("https:") else None)
        return httpx2.AsyncHTTPTransport(verify=context, limits=_LIMITS, proxy=settings)
    except ImportError as error:
        raise MisuseError(
            "a SOCKS proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY needs one more package: pip install socksio"
        ) from error
    except (ValueError, httpx2.InvalidURL) as error:  # their texts may quote a password
        raise MisuseError(
            "the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not the URL of a proxy; write http://host:3128,"
            " or https:// or socks5://"
        ) from error


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
        self,
        response: httpx2.Response,
        seen: Callable[[bytes], None] = lambda _: None,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(_chunks(response, seen, over), status_code=response.status_code)
        self.raw_headers = back(response.headers)


async def _chunks(
    response: httpx2.Response, seen: Callable[[bytes], None], over: Callable[[], None]
) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            seen(chunk)
            await asyncio.sleep(0)  # a client that has hung up is noticed only in between
            yield chunk  # nothing comes between the last one and `over`: the next request waits for that
    finally:  # also if the client hangs up before the provider ends
        over()
        await response.aclose()
