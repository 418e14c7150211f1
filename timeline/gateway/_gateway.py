"""The gateway as an object for programs, and its server."""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import attrs

from blocks import MisuseError
from persistence import EventStore, Requester, open_store
from render import Policy
from timeline import Options, Timeline, policy_named
from timeline._arguments import checked_options
from timeline._serving import LOOPBACK, AppServer, is_loopback
from timeline.gateway._admission import AdmittingStore
from timeline.gateway._lineage import Lineage, Opening
from timeline.gateway._money import BillMeter
from timeline.gateway._reader import READER, StoreReader
from timeline.gateway._rewriting import Rewriter
from timeline.report import Savings

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import Route


@attrs.define(kw_only=True, eq=False)
class Gateway:
    """Stands between an agent and its provider: the agent sends its full history, the provider gets the render.

    Everything is stored, one timeline per conversation.  Requests that cannot be rendered are forwarded unchanged,
    and so is every request if the gateway itself fails, unless `fail_closed` is set.

    Raises:
        MisuseError: there is no such policy or option, its value is not valid, or `options` has one of the gateway's own.
    """

    store: EventStore | Path | str
    """A store, or its path or URL; created if missing."""
    upstream: str | Mapping[str, str] | None = None
    """The server to which requests go: a URL, or one URL each for `anthropic` and `openai`; None: the vendors' own."""
    window: int | None = None
    """Tokens that a prompt may have; None: the model's window less the output reserve."""
    policy: Policy | str = "default"
    record_only: bool = False
    """Whether to change no request, and only report what would have been saved."""
    fail_closed: bool = False
    token: str | None = attrs.field(default=None, repr=False)
    """The token that clients must send; None: no token is required."""
    clock: Callable[[], float] = time.time
    options: Options = attrs.field(factory=Options)
    """Further options for `Timeline.open`; none of those that the gateway has itself. A request names its own model."""
    _shared: Options = attrs.field(init=False)
    """Those of all timelines."""
    _meter: BillMeter = attrs.field(init=False)
    _opened: EventStore = attrs.field(init=False)
    _lineage: Lineage = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if isinstance(self.policy, str):
            self.policy = policy_named(self.policy)
        if wrong := [name for name in _OF_GATEWAY if name in self.options]:
            raise MisuseError(
                f"options: not {' or '.join(wrong)}; a model is the request's, the rest are arguments of Gateway"
            )
        own = {"policy": self.policy, "window": self.window, "clock": self.clock}
        self._shared = cast("Options", checked_options({**self.options, **own}))
        store = self.store
        self._opened = open_store(store) if isinstance(store, str | Path) else store
        reading = frozenset(each.description for each in StoreReader(store=self._opened).tools())
        self._meter = BillMeter(store=self._opened, record_only=self.record_only, reading=reading)
        self._lineage = Lineage(store=AdmittingStore(self._opened), opener=self._timeline)

    @property
    def opened(self) -> EventStore:
        """The open store."""
        return self._opened

    def app(self) -> "Starlette":
        """The ASGI application.

        Raises:
            MisuseError: `upstream` is not a URL.
        """
        from starlette.routing import Mount

        from timeline.gateway._app import Served
        from timeline.gateway._upstream import Upstream, upstreams_of
        from timeline.report import live_app

        rewriter = Rewriter(
            lineage=self._lineage,
            clock=self.clock,
            record_only=self.record_only,
            fails_closed=self.fail_closed,
        )
        served = Served(
            rewriter=rewriter,
            upstream=Upstream(upstreams_of(self.upstream)),
            meter=self._meter,
            token=self.token,
        )
        return served.app(
            *self._tools(), Mount("/foldline", live_app(self._opened, token=self.token))
        )

    def _tools(self) -> "Sequence[Route]":
        """The routes of the tools with which an agent reads folded content back; empty without the package `mcp`."""
        if find_spec("mcp") is None:
            return ()
        from timeline.gateway._reader import mcp_route

        requester = self._shared.get("requester", Requester(READER))
        options = _among(self._shared, _ABOUT_READING)
        reader = StoreReader(store=self._opened, requester=requester, options=options)
        return (mcp_route(reader, self.token),)

    def savings(self) -> Savings:
        """The savings so far."""
        return self._meter.savings()

    def close(self) -> None:
        """Close all timelines, and the store if it was opened here. Idempotent."""
        self._lineage.close()
        if self._opened is not self.store:
            self._opened.close()

    def _timeline(self, store: EventStore, name: str, opening: Opening) -> Timeline:
        is_copy = store is not self._lineage.store  # nothing outside of a copy may be asked or told
        shared = _among(self._shared, _ABOUT_BYTES) if is_copy else self._shared
        own: Options = {**shared, "store": store, "model": opening.model}
        if opening.ttl_seconds is not None:  # the client asks the provider for this lifetime
            policy = cast("Policy", self.policy)
            own["policy"] = attrs.evolve(policy, ttl_seconds=opening.ttl_seconds)
        return Timeline.open(name, **own)


_OF_GATEWAY: Final = ("store", "model", "policy", "window", "clock")
_ABOUT_BYTES: Final = ("policy", "window", "clock", "counter", "keep_thinking")
"""Options of a timeline that decide what its requests are, and have no effect outside of it."""
_ABOUT_READING: Final = ("policy", "window", "counter", "artifacts")
"""Options that say where content is, and how much of it an answer may have. The keys are not among them: what is confidential
is not given out."""


def _among(options: Options, names: Sequence[str]) -> Options:
    return cast("Options", {name: value for name, value in options.items() if name in names})


@attrs.define
class GatewayServer(AppServer):
    """Serves a gateway between `start` and `stop`, or inside a `with` block; closes the gateway at the end."""

    extra: ClassVar[str] = "gateway"
    hurries: ClassVar[bool] = False
    gateway: Gateway

    def __attrs_post_init__(self) -> None:
        if not is_loopback(self.host) and not self.gateway.token:
            raise MisuseError(
                f"host {self.host!r}: other machines may connect only with a token; give token=, or host={LOOPBACK!r}"
            )

    def make_app(self) -> Any:
        """See `AppServer`."""
        return self.gateway.app()

    def stop(self) -> None:
        """Close every connection, the timelines and the store.  Idempotent."""
        AppServer.stop(self)
        self.gateway.close()
