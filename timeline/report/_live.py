"""The live view: a read-only ASGI app that shows the timelines of a store and follows their changes.

    uvicorn.run(live_app(store))         # or mounted: Mount("/", live_app(store))

Its addresses are relative, so it can be mounted anywhere.  It answers no requests of web pages elsewhere, and without
a token only those whose host is this machine, such as localhost (DNS rebinding).
"""

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from os import PathLike
from typing import Any, Final
from urllib.parse import parse_qs

import attrs
from starlette.applications import Starlette
from starlette.datastructures import URL
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from blocks import StoreError, TimelineId
from persistence import EventStore, StoreLocation, locate_store, look
from timeline._serving import foreign_in
from timeline.report._live_data import Listing, Look, Showing
from timeline.report._page import page, plain
from timeline.report._requests import json_bytes

COOKIE: Final = "foldline-token"
LOOK_SECONDS: Final = (1.0, 3.0)
"""Seconds between two reads of a store without notifications: one kept open, one opened for each read."""
PAUSE_FACTOR: Final = 20
"""The pause after a slow read, such as that of a copy of a large store, is this many times as long."""
HEARTBEAT_LOOKS: Final = 15
LOOKS_MAX: Final = 32
"""The most timelines kept in memory."""


def live_app(
    store: "EventStore | StoreLocation | str | PathLike[str]",
    *,
    showing: Showing | None = None,
    token: str | None = None,
) -> Starlette:
    """Create the app. A store given by path or URL is opened for each read only, so that an agent can use it.

    Args:
        store: A store, or the path or URL of an existing one.
        showing: Options of `Timeline.open`, system prompt and tools; whether to show what is hidden.
        token: Grants access, once as `?token=...` or as a bearer token. None: only requests to a host name
            of this machine are answered.
    """
    showing = showing or Showing()
    if isinstance(store, EventStore):
        served = _Served(looking=lambda: nullcontext(store), showing=showing, watched=store)
    else:
        where = locate_store(store) if isinstance(store, str | PathLike) else store
        served = _Served(looking=_StoreOpener(where), showing=showing)
    return Starlette(
        routes=[
            Route("/", served.index),
            Route("/timeline", served.timeline),
            Route("/timelines.json", served.timelines),
            Route("/overview.json", served.overview),
            Route("/contents.json", served.contents),
            Route("/changes", served.changes),
        ],
        middleware=[
            Middleware(_Guard, token=token),
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=4),
        ],
        exception_handlers={StoreError: _unreadable},
    )


@attrs.define
class _StoreOpener:
    """Opens a store for each read, so that a writer can use it; a store on a server stays open."""

    location: StoreLocation
    _remote: EventStore | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    """Lets one reader at a time open the file."""

    @contextmanager
    def __call__(self) -> Generator[EventStore]:
        with self._lock, ExitStack() as opened:
            store = self._remote or opened.enter_context(look(self.location))[0]
            # An exclusive store, or a copy of one that is locked.
            if not store.is_remote:
                yield store
                return
            self._remote = store
            opened.pop_all()
        yield store


async def _unreadable(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 503, {"Retry-After": "2"})


@attrs.define(kw_only=True)
class _Served:
    """The routes. Those that read are not coroutines, so they run in a thread."""

    looking: Callable[[], AbstractContextManager[EventStore]]
    """Gives the store for one read."""
    showing: Showing
    watched: EventStore | None = None
    """The store, if it stays open and may notify of appends; otherwise None."""
    listing: Listing = attrs.field(factory=Listing)
    looks: dict[str, Look] = attrs.field(factory=dict[str, Look])

    async def index(self, _: Request) -> Response:
        return _html("timelines", "Foldline.startList();", {})

    async def timeline(self, http: Request) -> Response:
        name = http.query_params.get("id", "")
        return _html(name or "timeline", "Foldline.startLive();", {"id": name})

    def timelines(self, _: Request) -> Response:
        with self.looking() as store:
            return _json(self.listing.rows(store))

    def overview(self, http: Request) -> Response:
        return self._shown(http, Look.overview)

    def contents(self, http: Request) -> Response:
        since = {name: int(value) for name, value in http.query_params.items() if value.isdecimal()}
        return self._shown(http, lambda look, store: look.contents(store, since))

    def _shown(self, http: Request, data: Callable[[Look, EventStore], dict[str, Any]]) -> Response:
        name = TimelineId(http.query_params.get("id", ""))
        with self.looking() as store:
            if not name or not store.head(name):
                return PlainTextResponse(f"no timeline {name!r}\n", 404)
            look = self.looks.pop(name, None) or Look(name, self.showing)
            self.looks[name] = look  # the newest last
            while len(self.looks) > LOOKS_MAX:
                self.looks.pop(next(iter(self.looks)))
            return _json(data(look, store))

    async def changes(self, http: Request) -> Response:
        """Server-sent events: the new version of the timeline, or of all timelines, at each change."""
        name = TimelineId(http.query_params.get("id", ""))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(name), 200, headers, "text/event-stream")

    async def _stream(self, name: TimelineId) -> AsyncIterator[bytes]:
        woken, end = self._woken(name)
        state, quiet = "", 0
        try:
            while True:
                start = time.monotonic()
                now = await asyncio.to_thread(self._state, name)
                slow = PAUSE_FACTOR * (time.monotonic() - start)
                pause = max(LOOK_SECONDS[self.watched is None], slow)
                if now != state:
                    state, quiet = now, 0
                    yield f"data: {now}\n\n".encode()
                elif (quiet := quiet + 1) % HEARTBEAT_LOOKS == 0:
                    yield b": still here\n\n"
                woken.clear()
                try:
                    await asyncio.wait_for(woken.wait(), pause)
                except TimeoutError:
                    continue
        finally:
            end()

    def _state(self, name: TimelineId) -> str:
        try:
            with self.looking() as store:
                if name:
                    return str(store.head(name))
                return str(sum(info.version for info in store.list()))
        except StoreError:
            return "locked"

    def _woken(self, name: TimelineId) -> tuple[asyncio.Event, Callable[[], None]]:
        """An event that is set at each append, and a function that ends the notifications."""
        woken, loop = asyncio.Event(), asyncio.get_running_loop()
        if not name or self.watched is None:
            return woken, lambda: None

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        return woken, self.watched.watch(name, wake)


def _html(title: str, start: str, data: dict[str, Any]) -> Response:
    body = page(title, [plain("report", data)], start=start, connects="'self'")
    return Response(body, 200, {"Cache-Control": "no-store"}, "text/html")


def _json(value: Any) -> Response:
    return Response(json_bytes(value), 200, {"Cache-Control": "no-store"}, "application/json")


@attrs.define
class _Guard:
    """Rejects requests without access, and all that do not only read."""

    app: ASGIApp
    token: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    def _refusal(self, http: Request) -> Response | None:
        if foreign := foreign_in(http.headers, has_token=self.token is not None):
            return PlainTextResponse(f"{foreign}\n", 403)
        token = parse_qs(http.url.query).get("token", [""])[-1]
        if self.token is not None and not self._knows(http, token):
            return PlainTextResponse("token missing or wrong: add ?token=... to the address\n", 401)
        if http.method not in {"GET", "HEAD"}:
            return PlainTextResponse("this server is read-only\n", 405)
        return self._let_in(http.url) if self.token is not None and token else None

    def _knows(self, http: Request, token: str) -> bool:
        bearer = http.headers.get("authorization", "").removeprefix("Bearer ")
        held = token or http.cookies.get(COOKIE) or bearer
        return secrets.compare_digest(held.encode(), (self.token or "").encode())

    def _let_in(self, url: URL) -> Response:
        """Redirect to the address without the token, which others may see; a cookie holds it from then on."""
        left = url.remove_query_params("token")
        target = f"/{left.path.lstrip('/')}" + (f"?{left.query}" if left.query else "")
        response = RedirectResponse(target, 303)
        response.set_cookie(COOKIE, self.token or "", httponly=True, samesite="strict")
        return response
