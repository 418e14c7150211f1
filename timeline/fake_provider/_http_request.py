"""The HTTP requests as they arrived, kept without keys for tests to inspect."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

import attrs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_KEYS: Final = frozenset(
    {"authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)
_KEY_PARAMETER: Final = "key"
_REMOVED: Final = "***"


@attrs.define(kw_only=True)
class HttpRequest:
    """One HTTP request as it was sent, to any path, whether refused or not."""

    method: str
    path: str
    query: str
    """The query as it was written, without the value of `key`."""
    headers: Mapping[str, str]
    """Names in lower case; the values of headers that contain a key are removed."""
    pieces: list[bytes] = attrs.field(factory=list[bytes], repr=False)
    """The pieces of the body as they arrived."""
    status: int = 0
    """The status of the response; 0: none yet."""

    @property
    def body(self) -> bytes:
        """The body as it was sent, compressed or not."""
        return b"".join(self.pieces)

    @property
    def json(self) -> Any:
        """The parsed JSON of the decompressed body.

        Raises:
            ValueError: the body is not valid JSON.
        """
        from timeline.fake_provider._body import unpacked

        plain = unpacked(self.body, self.headers.get("content-encoding", ""))
        if not isinstance(plain, bytes):
            raise ValueError(plain.message)  # noqa: TRY004 -- the body's value is wrong
        return json.loads(plain)


@attrs.frozen
class Recorded:
    """An ASGI app that adds each HTTP request to a list and passes it to another app."""

    app: "ASGIApp"
    kept: list[HttpRequest]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _begun(scope)
        self.kept.append(request)

        async def received() -> "Message":
            message = await receive()
            request.pieces.append(message.get("body", b""))
            return message

        async def sent(message: "Message") -> None:
            request.status = message.get("status", request.status)
            await send(message)

        await self.app(scope, received, sent)


def _begun(scope: "Scope") -> HttpRequest:
    named = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    return HttpRequest(
        method=scope["method"],
        path=scope["path"],
        query=_without_key(scope["query_string"].decode("latin-1")),
        headers={name: _REMOVED if name in _KEYS else value for name, value in named},
    )


def _without_key(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(name == _KEY_PARAMETER for name, _ in pairs):
        return query
    return urlencode([(name, _REMOVED if name == _KEY_PARAMETER else v) for name, v in pairs])
