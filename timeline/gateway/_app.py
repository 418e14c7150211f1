"""The gateway over HTTP: how it handles requests and answers, and what it does when it fails itself."""

import asyncio
import hmac
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TypeAlias, TypeVar

import attrs
import httpx2
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers as HttpHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from blocks import FoldlineError
from blocks.formats import Format, Stream, obj, stream_of, string
from render import Json, overflow_of
from timeline._serving import foreign_in
from timeline.engine import NoRoomError
from timeline.gateway._money import BillMeter, account_of
from timeline.gateway._request import (
    Api,
    RequestTooLargeError,
    UnreadableError,
    api_at,
    counting_at,
    decoded,
)
from timeline.gateway._rewriting import AgentCall, Rewriter
from timeline.gateway._upstream import Relayed, Upstream, onward
from timeline.gateway.clients import HEADER

_T = TypeVar("_T")
Content: TypeAlias = bytes | AsyncIterator[bytes]
log = logging.getLogger("foldline.gateway")

RENDERED_BYTES_MAX: Final = 2**25
"""A larger body is forwarded unchanged, because no provider accepts it."""
BODY_BYTES_MAX: Final = 2**28
"""A larger one is refused."""
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_GONE: Final = 499
"""The status of a response that nobody receives, because the client has disconnected."""
_UNHEARD: Final = (401, 403)
"""HTTP statuses with which a provider refuses a request because of who sends it."""
_NO_GEMINI: Final = (
    "foldline: this gateway knows the servers of Anthropic and OpenAI; nothing was forwarded. Send requests to Gemini to"
    " its own URL, or name one server for all with --upstream"
)
_TOO_LONG: Final = (400, 413)
"""HTTP statuses with which providers answer, among other things, a prompt that is too long."""


@attrs.frozen(kw_only=True)
class Served:
    """Handles the requests to the gateway."""

    rewriter: Rewriter
    upstream: Upstream
    meter: BillMeter
    token: str | None

    def app(self, *more: BaseRoute) -> Starlette:
        """The application; `more` are further routes, matched before all others."""
        own = [
            Route("/foldline/savings", self.savings),
            *more,
            Route("/{path:path}", self.relay, methods=list(_METHODS)),
        ]
        door = Middleware(_Door, has_token=self.token is not None)
        return Starlette(routes=own, lifespan=self._living, middleware=[door])

    @asynccontextmanager
    async def _living(self, _: Starlette) -> AsyncGenerator[None]:
        yield
        await self.upstream.close()

    async def savings(self, http: Request) -> Response:
        if (refused := self._refused(http)) is not None:
            return refused
        return JSONResponse(self.meter.savings().json())

    async def relay(self, http: Request) -> Response:
        """Forward a request, rendered if possible; return the provider's response."""
        is_page = "text/html" in http.headers.get("accept", "")  # as only a browser asks for it
        if http.method == "GET" and http.scope["path"] == "/" and is_page:
            return RedirectResponse(f"/foldline/{'?' * bool(http.url.query)}{http.url.query}")
        if (refused := self._refused(http)) is not None:
            return self._failed(refused)
        if http.headers.get("upgrade", "").lower() == "websocket":
            return self._failed(PlainTextResponse("websockets are not supported: use HTTP", 426))
        path = _path(http) if http.method == "POST" else ""
        counting = counting_at(path)
        api = counting or api_at(path, http.headers)
        try:
            if api is None:
                return await self._passed(http, _incoming(http))
            raw = await _whole(http)
            if len(raw) > RENDERED_BYTES_MAX:
                return self._unread(api, await self._send(http, raw, None, _PLAIN))
            if counting:
                return await self._passed(http, raw, await self._counted(http, api, raw))
            return await self._call(http, api, raw)
        except ClientDisconnect:
            return self._failed(Response(status_code=_GONE))
        except RequestTooLargeError:
            return self._failed(_error(413, "request_too_large", "the request is too large"))
        except httpx2.TransportError as error:
            advice = ""
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                advice = "; if your network has a certificate authority of its own, name its file in SSL_CERT_FILE"
            message = f"the provider could not be reached: {type(error).__name__}: {error}{advice}"
            log.warning("%s", message)
            return self._failed(_error(502, "api_error", message))

    def _failed(self, response: Response) -> Response:
        """Count a request that was refused or got no answer; return the response to it."""
        self.meter.count("failed")
        return response

    def _unread(self, api: Api, response: httpx2.Response) -> Response:
        """Pass on the response to a call that was forwarded as it came and is in no timeline."""
        if response.status_code != 200:  # noqa: PLR2004 -- OK
            return self._failed(Relayed(response))
        answer = AnswerReader.of(api.provider, response)

        def over() -> None:
            self.meter.forwarded(api.provider, answer.response() or {})

        return Relayed(response, answer.add, over)

    async def _call(self, http: Request, api: Api, raw: bytes) -> Response:
        call: AgentCall | None = None
        try:
            call = await asyncio.to_thread(self._rendered, self.rewriter.call, http, api, raw)
        except UnreadableError as reason:
            log.info("passed on unchanged: %s", reason)
        except NoRoomError as error:  # it is not passed on: that would ignore the window
            log.warning("refused: %s", error)
            return self._failed(_error(400, "invalid_request_error", f"foldline: {error}"))
        except Exception as error:  # noqa: BLE001 -- on any error it is forwarded unchanged
            log.warning("passed on unchanged: %s: %s", type(error).__name__, error)
            if self.rewriter.fails_closed:
                message = f"foldline could not render this request: {error}"
                return self._failed(_error(500, "api_error", message))
        if call is None:
            return self._unread(api, await self._send(http, raw, None, _PLAIN))
        return await self._answered(http, call, raw)

    def _rendered(self, render: Callable[..., _T], http: Request, api: Api, raw: bytes) -> _T:
        text = decoded(raw, http.headers.get("content-encoding", ""))
        return render(api, http.headers, text)

    async def _counted(self, http: Request, api: Api, raw: bytes) -> bytes | None:
        """The body to count in place of the client's: the request that would be sent; None: the client's own."""
        try:
            return await asyncio.to_thread(self._rendered, self.rewriter.counted, http, api, raw)
        except Exception as error:  # noqa: BLE001 -- on any error the client's body is counted
            log.info("counted without rendering: %s: %s", type(error).__name__, error)
            return None

    async def _answered(self, http: Request, call: AgentCall, raw: bytes) -> Response:
        try:
            response = await self._sent(http, call, raw)
        except BaseException:  # such as a client that hangs up
            self.rewriter.turn_away(call)
            raise
        if not await self._is_stored(call, response):
            return self._unread(call.request.body.api, response)
        if call.is_rewritten and response.status_code in _TOO_LONG:
            call, response = await self._again(http, call, raw, response)
        if response.status_code != 200:  # noqa: PLR2004 -- OK
            return self._failed(Relayed(response))
        answer = AnswerReader.of(call.request.body.api.provider, response)
        url = self.upstream.url(_path(http), "", http.headers)
        account = account_of(url, http.headers, response.headers)
        loop = asyncio.get_running_loop()

        def over() -> None:
            call.conversation.is_noted.clear()
            loop.run_in_executor(None, self._note, call, answer, account)

        return Relayed(response, answer.add, over)

    async def _is_stored(self, call: AgentCall, response: httpx2.Response) -> bool:
        """Whether the request is in the store now. It is not if the provider did not let it in."""
        try:
            is_read = response.status_code not in _UNHEARD
            if is_read and await asyncio.to_thread(self.rewriter.admit, call):
                return True
        except Exception as error:  # noqa: BLE001 -- the client gets its answer nevertheless
            self.rewriter.lose(call, error)
        self.rewriter.turn_away(call)
        return False

    async def _sent(self, http: Request, call: AgentCall, raw: bytes) -> httpx2.Response:
        """The provider's response to a call; an unchanged request is sent with the client's exact bytes."""
        changed = call.body if call.is_rewritten else None
        return await self._send(http, raw, changed, _PLAIN)

    async def _send(
        self, http: Request, content: Content, changed: bytes | None = None, *own: tuple[str, str]
    ) -> httpx2.Response:
        """The provider's response to a request with the client's content or, if `changed` is not None, with that
        body; `own` headers take the place of the client's."""
        without = [*dict(own), *(() if changed is None else _OF_BODY)]
        headers = [*onward(http.headers.items(), *without), *own]
        has_body = "content-length" in http.headers or "transfer-encoding" in http.headers
        body = (content if has_body else None) if changed is None else changed
        url = self.upstream.url(_path(http), http.url.query, http.headers)
        sending = self.upstream.send(http.method, url, headers, body)
        return await (
            sending if isinstance(content, AsyncIterator) else _unless_gone(http, sending)
        )

    async def _again(
        self, http: Request, call: AgentCall, raw: bytes, response: httpx2.Response
    ) -> tuple[AgentCall, httpx2.Response]:
        """The retry after the provider refused a rendered request: a compacted one if the prompt was too long,
        otherwise the client's own."""
        kind, message = error_in(await response.aread())
        await response.aclose()
        overflow = overflow_of(response.status_code, kind, message)
        smaller: AgentCall | None = None
        if overflow is not None:
            try:
                smaller = await asyncio.to_thread(self.rewriter.smaller, call, overflow)
            except Exception as error:  # noqa: BLE001 -- whatever fails here, the client's own is sent
                log.warning("sent unchanged: %s: %s", type(error).__name__, error)
        else:
            status = response.status_code
            log.warning("the provider refused a rendered request (%d): %s", status, message)
        if smaller is None:
            smaller = call.as_given
        return smaller, await self._sent(http, smaller, raw)

    def _note(self, call: AgentCall, answer: "AnswerReader", account: str) -> None:
        """Record the usage and cost of an answer."""
        is_billed = False
        try:
            response = answer.response() or {}
            if response and call.timeline is call.conversation.timeline:
                call.conversation.answered = call.rendered
            usage = self.meter.answered(call, response, account)
            is_billed = True
            self.rewriter.learn(call, usage)
        except Exception as error:  # the client has its answer: what fails here is only logged
            if not is_billed:
                self.meter.count("unreported")
            cause = None if isinstance(error, FoldlineError) else error
            log.warning("the cost of a call could not be recorded: %s", error, exc_info=cause)
        finally:
            call.conversation.is_noted.set()

    async def _passed(
        self, http: Request, content: Content, changed: bytes | None = None
    ) -> Response:
        response = await self._send(http, content, changed)
        self.meter.count("passed")
        return Relayed(response)

    def _refused(self, http: Request) -> Response | None:
        """The refusal of a request without the right token, or with a key of another vendor; None: it is accepted."""
        if self.token is not None and not _knows(http, self.token):
            message = f"this gateway requires its token, in the header {HEADER} or as /token/... before the path"
            return _error(401, "authentication_error", message)
        if not self.upstream.serves(_path(http), http.headers):
            return _error(404, "not_found_error", _NO_GEMINI)
        return None


@attrs.define
class _Door:
    """Refuses the requests of web pages elsewhere, whatever they ask for; nothing of them is stored or forwarded."""

    app: ASGIApp
    has_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        foreign = scope["type"] == "http" and foreign_in(
            HttpHeaders(scope=scope), has_token=self.has_token
        )
        if foreign:
            log.info("refused: %s", foreign)
            await _error(403, "permission_error", f"foldline: {foreign}")(scope, receive, send)
            return
        await self.app(scope, receive, send)


_OF_BODY: Final = ("content-length", "content-encoding")
_PLAIN: Final = ("accept-encoding", "identity")
"""A request header: answers come uncompressed, so that their usage can be read while they stream."""


def _path(http: Request) -> str:
    """The path of a request as it was sent, without the token."""
    raw: bytes = http.scope.get("raw_path") or http.scope["path"].encode()
    path = raw.decode("ascii", "replace").partition("?")[0]
    parts = path.split("/", 3)
    if len(parts) > 2 and parts[1] == "token":  # noqa: PLR2004 -- "", "token", the token, the path
        return f"/{parts[3] if len(parts) > 3 else ''}"  # noqa: PLR2004
    return path


def _knows(http: Request, token: str) -> bool:
    path = str(http.scope["path"]).split("/", 3)
    in_path = path[2] if len(path) > 2 and path[1] == "token" else ""  # noqa: PLR2004 -- see `_path`
    return hmac.compare_digest(http.headers.get(HEADER, in_path).encode(), token.encode())


async def _unless_gone(
    http: Request, sending: Coroutine[Any, Any, httpx2.Response]
) -> httpx2.Response:
    """The response; if the client disconnects first, the request to the provider is cancelled. The client's request
    must have been read completely.

    Raises:
        ClientDisconnect: the client has disconnected.
    """
    answer, disconnect = asyncio.ensure_future(sending), asyncio.ensure_future(http.receive())
    try:
        await asyncio.wait((answer, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()
        disconnect.cancel()


async def _incoming(http: Request) -> AsyncIterator[bytes]:
    count = 0
    async for chunk in http.stream():
        count += len(chunk)
        if count > BODY_BYTES_MAX:
            raise RequestTooLargeError
        yield chunk


async def _whole(http: Request) -> bytes:
    if int(http.headers.get("content-length") or 0) > BODY_BYTES_MAX:
        raise RequestTooLargeError
    return b"".join([chunk async for chunk in _incoming(http)])


def _error(status: int, kind: str, message: str) -> JSONResponse:
    """An error in the form that both vendors use."""
    return JSONResponse({"type": "error", "error": {"type": kind, "message": message}}, status)


# The usage in an answer.


USAGE: Final = b'"usage"'
JSON_BYTES_MAX: Final = 2**25
"""Largest size of an answer without a stream that is read."""


@attrs.define
class AnswerReader:
    """Reads an answer; of a stream, only the events with its usage."""

    is_stream: bool
    _stream: Stream
    _rest: bytearray = attrs.field(factory=bytearray, init=False)
    _is_lost: bool = attrs.field(default=False, init=False)

    @classmethod
    def of(cls, format: Format, response: httpx2.Response) -> Self:  # noqa: A002 -- as everywhere
        """The reader of an answer that begins with these headers."""
        is_stream = "event-stream" in response.headers.get("content-type", "")
        return cls(is_stream, stream_of(format, "gateway"))

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the answer."""
        if self._is_lost:
            return
        self._rest += chunk
        if self.is_stream:
            self._take_lines()
        if len(self._rest) > JSON_BYTES_MAX:
            self._is_lost = True
            self._rest.clear()

    def response(self) -> Json | None:
        """The usage and identity of the response; None: nothing could be read."""
        if self.is_stream:
            return self._stream.response()
        return _json(bytes(self._rest)) or None

    def _take_lines(self) -> None:
        end = self._rest.rfind(b"\n")
        if end < 0:
            return
        lines, self._rest = bytes(self._rest[:end]), self._rest[end + 1 :]
        if USAGE not in lines:
            return
        for line in lines.splitlines():
            if line.startswith(b"data:") and USAGE in line and (event := _json(line[5:])):
                self._stream.add(event)


def error_in(data: bytes) -> tuple[str, str]:
    """The most specific name and the message of an error, if the body has them; some servers send the message alone."""
    body = _json(data)
    fields = obj(body.get("error")) or body
    message = string(fields.get("message")) or string(fields.get("error"))
    return str(fields.get("code") or fields.get("type") or ""), message


def _json(data: bytes) -> Json:
    try:
        return obj(msgspec.json.decode(data))
    except (msgspec.DecodeError, RecursionError):
        return {}
