"""Measures what the gateway adds to a call, with many agents and long histories, beside a bare proxy.

python -m benchmarks.gateway.load [--agents 16] [--tokens 200000] [--calls 25] [--window 60000]
python -m benchmarks.gateway.load --memory 10000       # small histories: does it grow?

Every request goes through both, each in its own process, to the same upstream.  The time of a proxy is that
until the upstream has the request, and that from the upstream's answer to the first byte at the client.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import httpx2

from benchmarks.gateway.agents import CLIENT, Agent, grown
from benchmarks.gateway.serve import ANSWERED, ARRIVED, RECEIVED, Child, started

THINK_SECONDS: Final = 0.5
"""The mean seconds that a tool takes."""
TOKENS_OF_SMALL: Final = 3_000
CALLS_OF_SMALL: Final = 50
LOOKS: Final = 10


@attrs.frozen
class Call:
    """The milliseconds that one request took through one proxy, and what arrived."""

    ms: float
    received: int


async def send(http: httpx2.AsyncClient, url: str, agent: Agent) -> Call:
    """Send the agent's current request; returns when the answer is complete."""
    body, headers = agent.body, agent.headers
    sent = time.monotonic()
    async with http.stream("POST", url + CLIENT.path, content=body, headers=headers) as answer:
        chunks = answer.aiter_raw()
        first = await anext(chunks)
        came = time.monotonic()
        whole = first + b"".join([chunk async for chunk in chunks])
    if CLIENT.last_event not in whole:
        raise RuntimeError(f"{answer.status_code}: {whole[:300]!r}")
    there, answered = float(answer.headers[ARRIVED]), float(answer.headers[ANSWERED])
    ms = ((there - sent) + (came - answered)) * 1_000
    return Call(ms, int(answer.headers[RECEIVED]))


def client() -> httpx2.AsyncClient:
    """A client with long timeouts that does not reuse connections which the server may be closing."""
    limits = httpx2.Limits(keepalive_expiry=2.0)
    return httpx2.AsyncClient(timeout=600, trust_env=False, limits=limits)


@attrs.define
class Measured:
    """The measurements of all agents."""

    plain: list[tuple[Call, Call]] = attrs.field(factory=list[tuple[Call, Call]])
    """For each request, the call through the bare proxy and that through the gateway."""
    compacting: list[tuple[Call, Call]] = attrs.field(factory=list[tuple[Call, Call]])


async def live(
    agent: Agent, urls: tuple[str, str], calls: int, found: Measured, begun: asyncio.Barrier
) -> None:
    """Run one agent's calls; first calls and calls that take something out are recorded separately."""
    chance, received = random.Random(agent.number), 0  # noqa: S311 -- repeatable, not secret
    async with client() as http:
        for number in range(calls):
            await asyncio.sleep(chance.uniform(0, 2 * THINK_SECONDS))
            ways = {}
            for url in urls if number % 2 else reversed(urls):
                ways[url] = await send(http, url, agent)
            pair = (ways[urls[0]], ways[urls[1]])
            is_plain = number > 0 and pair[1].received > received
            (found.plain if is_plain else found.compacting).append(pair)
            received = pair[1].received
            agent.grow()
            if number == 0:
                await begun.wait()


@attrs.frozen(kw_only=True)
class Bench:
    """The running servers."""

    upstream: Child
    bare: Child
    gateway: Child

    @classmethod
    @contextmanager
    def opened(cls, given: argparse.Namespace) -> "Iterator[Bench]":
        """Start the upstream and both proxies."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="foldline-")))
            enter = stack.enter_context
            seconds = 0.0 if given.memory else given.seconds
            upstream = enter(started("upstream", "--seconds", str(seconds)))
            store = f"{given.store}:///{folder / 'load'}"
            options = ("--store", store, "--window", str(given.window))
            yield cls(
                upstream=upstream,
                bare=enter(started("bare", upstream.url)),
                gateway=enter(started(given.second, upstream.url, *options)),
            )


async def load(bench: Bench, agents: Sequence[Agent], calls: int) -> Measured:
    """Run all agents at once."""
    found, urls = Measured(), (bench.bare.url, bench.gateway.url)
    begun = asyncio.Barrier(len(agents))
    await asyncio.gather(*(live(agent, urls, calls, found, begun) for agent in agents))
    return found


def tell(found: Measured) -> None:
    """Print a line for each kind of call."""
    for what, pairs in (("plain calls", found.plain), ("compacting", found.compacting)):
        if not pairs:
            continue
        ways = {
            "bare": [bare.ms for bare, _ in pairs],
            "gateway": [ours.ms for _, ours in pairs],
            "added": [ours.ms - bare.ms for bare, ours in pairs],
        }
        told = "; ".join(
            f"{way} p50 {median(ms):.1f} p99 {last(ms):.1f} ms" for way, ms in ways.items()
        )
        print(f"{what}: {len(pairs)}; {told}")


def last(ms: Sequence[float]) -> float:
    """The 99th percentile."""
    return quantiles(ms, n=100)[98] if len(ms) > 1 else ms[0]


async def many(bench: Bench, requests: int) -> list[float]:
    """Send `requests` requests of small sessions, 16 at once; returns the gateway's memory after each tenth."""
    megabytes = list[float]()
    for look in range(LOOKS):
        sessions = range(requests // LOOKS // CALLS_OF_SMALL)
        agents = [grown(1_000 * (look + 1) + number, TOKENS_OF_SMALL) for number in sessions]
        await asyncio.gather(*(quick(agent, bench.gateway.url) for agent in agents))
        megabytes.append(bench.gateway.megabytes)
    return megabytes


async def quick(agent: Agent, url: str) -> None:
    """Run a session without pauses."""
    async with client() as http:
        for _ in range(CALLS_OF_SMALL):
            await send(http, url, agent)
            agent.grow()


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--calls", type=int, default=25)
    parser.add_argument("--window", type=int, default=60_000)
    parser.add_argument("--seconds", type=float, default=0.5, help="what the model takes")
    parser.add_argument("--second", choices=["gateway", "bare"], default="gateway")
    parser.add_argument("--store", choices=["sqlite", "duckdb"], default="sqlite")
    parser.add_argument("--memory", type=int, default=0, metavar="REQUESTS")
    given = parser.parse_args()
    if given.memory:
        with Bench.opened(given) as bench:
            megabytes = asyncio.run(many(bench, given.memory))
        print(
            f"MB after each tenth of {given.memory:,} requests:", *(f"{mb:.0f}" for mb in megabytes)
        )
        return 0
    agents = [grown(number, given.tokens) for number in range(given.agents)]
    with Bench.opened(given) as bench:
        tell(asyncio.run(load(bench, agents, given.calls)))
        print(
            f"gateway: {bench.gateway.megabytes:.0f} MB, bare proxy: {bench.bare.megabytes:.0f} MB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
