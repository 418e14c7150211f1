"""Measures gateways between an agent and its provider: they get the client's own requests, judged alike.

The agent uses Anthropic's API and marks its system prompt and its last message, as most agents do.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeAlias

import attrs
import httpx2
from starlette.requests import Request
from starlette.responses import Response

from benchmarks.gateway.agents import streamed
from benchmarks.gateway.bare import served
from benchmarks.gateway.clients import CLIENTS, id_of
from benchmarks.gateway.play import gateway
from benchmarks.peers.driver import Child
from benchmarks.peers.measure import Recording, Row, options, row_of
from render import Json, Rendered
from timeline.billing import RunningBill
from timeline.replay._handover import MemoryMeter
from timeline.replay._replay import Clock

Changed: TypeAlias = Callable[[Json], tuple[Json, float]]
"""Returns the request that is sent on, and the milliseconds that this took."""
_CLIENT = CLIENTS["claude-code"]


def theirs(child: Child, recording: Recording) -> Row:
    """Measure a peer on a session."""
    child.begin(recording.window, recording.fixed_tokens)
    changed = child.changed if child.peer.is_marked else _marking(child.changed)
    return _through(child.peer.name, recording, changed)


def our_gateway(recording: Recording) -> Row:
    """Measure our gateway over HTTP, in the recording's window."""
    clock = Clock()
    with _between(clock, recording) as changed:
        return _through("foldline proxy", recording, changed, clock)


def untouched(recording: Recording) -> Row:
    """Measure the client's own requests and marks, without a gateway."""
    return _through("no gateway", recording, lambda request: (request, 0.0))


def _through(name: str, recording: Recording, changed: Changed, clock: Clock | None = None) -> Row:
    model = options(recording.window).model_for(recording.session)
    bill = RunningBill(model=model, flattener=recording.flattener)
    memory, over, session = MemoryMeter.of(recording.session), 0, id_of(recording.session)
    milliseconds: list[float] = []
    for call, moment in enumerate(recording.moments):
        if clock:
            clock.now = moment.at
        request, ms = changed(_CLIENT.body(moment.full, session))
        sent = bill.cache.request(recording.flattener.sent(request))
        step = bill.bill(moment.at, sent)
        over += step.total > recording.window
        if moment.full_tokens > recording.window:
            memory.measure(call, _as_rendered(request, moment.full))
        milliseconds.append(ms)
    return row_of(name, bill.units / recording.units, memory, (bill.busts, over, 0), milliseconds)


def _as_rendered(request: Json, full: Rendered) -> Rendered:
    messages = [
        {**m, "content": [{"type": "text", "text": m["content"]}]}
        if isinstance(m["content"], str)
        else m
        for m in request["messages"]
    ]
    return attrs.evolve(full, messages=tuple(messages))


def _marking(changed: Changed) -> Changed:
    """Remove the client's marks before the gateway, and set them again after it."""

    def marked(request: Json) -> tuple[Json, float]:
        sent, ms = changed(_unmarked(request))
        system = list(sent["system"])
        system[-1] = {**system[-1], **_MARK}
        *first, last = sent["messages"]
        content = last["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        blocks[-1] = {**blocks[-1], **_MARK}
        return {**sent, "system": system, "messages": [*first, {**last, "content": blocks}]}, ms

    return marked


_MARK = {"cache_control": {"type": "ephemeral"}}


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


@contextmanager
def _between(clock: Clock, recording: Recording) -> Iterator[Changed]:
    """Start our gateway, and an upstream that keeps the last request."""
    arrived: list[Json] = []

    async def keeping(scope: Any, receive: Any, send: Any) -> None:
        arrived.append(await Request(scope, receive).json())
        await Response(_SAID, media_type="text/event-stream")(scope, receive, send)

    headers, path = _CLIENT.headers(id_of(recording.session)), _CLIENT.path
    with (
        TemporaryDirectory(prefix="foldline-") as folder,
        served(keeping) as upstream,
        gateway(upstream, Path(folder) / "peers.duckdb", clock, options(recording.window)) as url,
        httpx2.Client(timeout=600, trust_env=False) as http,
    ):

        def changed(request: Json) -> tuple[Json, float]:
            began = perf_counter()
            http.post(url + path, json=request, headers=headers).raise_for_status()
            return arrived.pop(), (perf_counter() - began) * 1_000

        yield changed


_SAID = streamed([{"type": "text", "text": "ok"}])
