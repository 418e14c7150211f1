"""Plays a recorded session as its agent would send it: call by call over HTTP, with the full history each time."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Self, TypeAlias

import attrs
import httpx2
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from benchmarks.gateway.bare import bare_proxy, served
from benchmarks.gateway.clients import Client, client_of, id_of
from benchmarks.gateway.upstream import Judge, Upstream, as_said, decided, reply_of
from persistence.sessions import Responded, Session
from render import Rendered
from timeline.fake_provider._app import app_of
from timeline.replay import ReplayOptions, replay
from timeline.replay._replay import Clock, whole_timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

Through: TypeAlias = Callable[[str, Path, Clock, ReplayOptions], AbstractContextManager[str]]
"""Starts what is measured, from the upstream's URL, a folder for its store, the clock and its options."""


@attrs.frozen(kw_only=True)
class Played:
    """The costs of one session in three ways."""

    session: str
    client: str
    calls: int
    window: int
    through: float
    """Dollars for the prompts that arrived at the upstream."""
    replayed: float
    """The cost by `foldline replay`, in dollars."""
    direct: float
    """The cost of the client's own requests with its own marks, in dollars."""
    refused: tuple[str, ...]
    failed: tuple[str, ...]
    """The errors that the client got instead of an answer."""
    over: int
    busts: int
    """Lost warm caches at calls where nothing was taken out."""
    added_ms: tuple[float, ...]
    """Milliseconds from the client to the upstream, less those of a bare proxy in the same run."""

    @property
    def of_replay(self) -> float:
        """The cost relative to the replay; should be within 2% of 1."""
        return self.through / self.replayed if self.replayed else 1.0

    @property
    def of_direct(self) -> float:
        """The cost relative to sending directly; should be at most 1.02."""
        return self.through / self.direct if self.direct else 1.0


def options_for(session: Session, client: Client, window: int, policy: str) -> ReplayOptions:
    """The options for both replay and gateway; thinking is left out."""
    plain = ReplayOptions(provider=client.provider)
    return ReplayOptions(
        window=window,
        policy=policy,
        provider=client.provider,
        keep_thinking=False,
        system=client.system(str(plain.system_for(session))),
    )


def play(session: Session, window: int, policy: str, through: str) -> Played:
    """Play one whole session."""
    session = as_said(session)
    client = client_of(session)
    options = options_for(session, client, window, policy)
    model = options.model_for(session)
    upstream = Upstream(Judge.of(model, window))
    direct = Judge.of(model, window)
    full = whole_timeline(session, options)
    with TemporaryDirectory(prefix="foldline-") as folder:
        store = Path(folder) / "gateway.duckdb"
        with Wire.opened(
            client, id_of(session), upstream, store, THROUGH[through], options
        ) as wire:
            for item in session.items:
                if isinstance(item, Responded):
                    upstream.clock.now, upstream.next = item.at, reply_of(item)
                    rendered, _ = full.render(item.at)
                    direct.take(item.at, client.body(rendered, wire.session))
                    wire.call(rendered)
                full.append(item.at, item.blocks)
        moments = decided(store) if store.exists() else set[float]()
    judge = upstream.judge
    return Played(
        session=session.name,
        client=client.name,
        calls=len(session.calls),
        window=window,
        through=judge.bill.dollars,
        replayed=replay(session, options).cost.total,
        direct=direct.bill.dollars,
        refused=tuple(judge.refused),
        failed=tuple(wire.failed),
        over=judge.over,
        busts=sum(at not in moments for at in judge.busts_at),
        added_ms=tuple(wire.added_ms),
    )


@attrs.define
class Wire:
    """A client that sends through what is measured, and through a bare proxy to a sink."""

    client: Client
    session: str
    upstream: Upstream
    http: httpx2.Client
    url: str
    bare: str
    failed: list[str] = attrs.field(factory=list[str])
    added_ms: list[float] = attrs.field(factory=list[float])

    @classmethod
    @contextmanager
    def opened(
        cls,
        client: Client,
        session: str,
        upstream: Upstream,
        store: Path,
        through: Through,
        options: ReplayOptions,
    ) -> "Iterator[Self]":
        """Start all servers; they stop at the end."""
        with ExitStack() as stack:
            enter = stack.enter_context
            strict = enter(served(upstream.timed(app_of(upstream.provider))))
            sink = enter(served(upstream.timed(_sink)))
            yield cls(
                client=client,
                session=session,
                upstream=upstream,
                http=enter(httpx2.Client(timeout=600, trust_env=False)),
                url=enter(through(strict, store, upstream.clock, options)),
                bare=enter(served(bare_proxy(sink))),
            )

    def call(self, full: Rendered) -> None:
        """Send one request both ways."""
        body = self.client.request(full, self.session)
        bare, _ = self._post(self.bare, body)
        ms, answer = self._post(self.url, body)
        self.added_ms.append(ms - bare)
        if answer.status_code != httpx2.codes.OK or self.client.last_event not in answer.content:
            self.failed.append(f"{answer.status_code} {answer.text[:200]}")

    def _post(self, url: str, body: bytes) -> tuple[float, httpx2.Response]:
        """Send a request; returns the milliseconds until the upstream has it, and the answer."""
        headers = {**self.client.headers(self.session), "content-type": "application/json"}
        began = perf_counter()
        answer = self.http.post(url + self.client.path, content=body, headers=headers)
        return (self.upstream.arrived - began) * 1_000, answer


async def _sink(scope: Scope, receive: Receive, send: Send) -> None:
    """Accept any request with an empty answer."""
    while (await receive()).get("more_body"):
        pass
    await Response(b"{}")(scope, receive, send)


@contextmanager
def nothing(url: str, store: Path, clock: Clock, options: ReplayOptions) -> "Iterator[str]":  # noqa: ARG001 -- a `Through`
    """Use no proxy."""
    yield url


@contextmanager
def bare(url: str, store: Path, clock: Clock, options: ReplayOptions) -> "Iterator[str]":  # noqa: ARG001 -- a `Through`
    """Use the bare proxy."""
    with served(bare_proxy(url)) as proxy:
        yield proxy


@contextmanager
def gateway(url: str, store: Path, clock: Clock, options: ReplayOptions) -> "Iterator[str]":
    """Use our gateway."""
    from timeline.gateway import Gateway, GatewayServer

    made = Gateway(
        store=store,
        upstream=url,
        window=options.window,
        policy=options.policy,
        clock=clock,
        options={"counter": options.counter, "keep_thinking": options.keep_thinking},
    )
    with GatewayServer(made) as server:
        yield server.url


THROUGH: dict[str, Through] = {"nothing": nothing, "bare": bare, "gateway": gateway}
