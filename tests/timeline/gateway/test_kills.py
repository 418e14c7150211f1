"""kill -9 of the gateway at any moment: the same request is sent on as the same bytes, and nothing is lost."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import attrs
import httpx2
import pytest

from benchmarks.material import Writer
from persistence import open_store, verify
from render import Json
from tests import _http
from timeline.fake_provider import Call, FakeProvider, FakeServer, Reply

from ._two_ways import WIRES

pytestmark = pytest.mark.network

PROGRAM = """
import sys
from timeline.gateway import Gateway, GatewayServer

with GatewayServer(Gateway(store=sys.argv[1], upstream=sys.argv[2], window=5_000)) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""
ROUNDS = 20
FACTOR = 1.3
"""Tokens that the provider finds for each that is estimated: what is learned must not change what was decided."""


@attrs.define
class Killed:
    """A gateway in a process of its own, which can be killed and started again."""

    store: str
    """Its URL."""
    upstream: str
    url: str = attrs.field(init=False)
    _process: "subprocess.Popen[str]" = attrs.field(init=False)

    def start(self) -> None:
        command = [sys.executable, "-c", PROGRAM, self.store, self.upstream]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        self.url = self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def restart(self) -> None:
        self.kill()
        self.start()


@attrs.define
class Agent:
    """An agent that sends its full history and tries again until it is answered."""

    upstream: FakeServer
    gateway: Killed
    messages: list[Json] = attrs.field(factory=list[Json])
    sent: list[list[str]] = attrs.field(factory=list[list[str]])
    """What the upstream got for each of its requests, every time."""
    _writer: Writer = attrs.field(factory=lambda: Writer(seed=3))

    def round(self, number: int, meanwhile: Callable[[], object]) -> None:
        """One request, during which something else may happen; its answer, and a result."""
        before = len(self.upstream.requests)
        beside = threading.Thread(target=meanwhile)
        beside.start()
        self._ask()
        beside.join()
        answer = self._ask()
        while answer is None:
            answer = self._ask()
        self.sent.append([json.dumps(one) for one in self.upstream.requests[before:]])
        self.messages.append({"role": "assistant", "content": answer["content"]})
        text = "\n".join([f"result {number}", *(self._writer.line() for _ in range(20))])
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": text}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results})

    def _ask(self) -> Json | None:
        wire = WIRES["messages"]
        body = {**wire.body, "messages": self.messages}
        try:
            with _http.client() as http:
                answer = http.post(self.gateway.url + wire.path, headers=wire.headers, json=body)
        except httpx2.TransportError:
            time.sleep(0.02)  # between two tries; it is being started
            return None
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found


def model(request: Json) -> Reply:
    """Calls a tool, and says the same to the same request."""
    said = json.dumps(request["messages"][-1])
    number = said.partition("result ")[2].partition("\\n")[0] or "0"
    call = Call("read_file", {"path": f"src/part_{number}.py"}, f"toolu_{number}")
    return Reply(text=f"I read part {number}.", calls=[call])


@pytest.mark.parametrize("url", ["{}.duckdb", "sqlite:///{}.sqlite"])
def test_the_same_request_is_the_same_bytes_whenever_the_gateway_was_killed(
    tmp_path: Path, url: str
) -> None:
    chance, store = Random(7), url.format(tmp_path / "agent")  # noqa: S311 -- moments
    with FakeServer(FakeProvider(responder=model, factor=FACTOR)) as upstream:
        gateway = Killed(store, upstream.url)
        gateway.start()
        agent = Agent(upstream, gateway, [{"role": "user", "content": "Read all parts."}])

        def killed() -> None:
            time.sleep(chance.uniform(0.0, 0.04))  # any moment of a request will do
            gateway.restart()

        for number in range(1, ROUNDS + 1):
            agent.round(number, killed if number % 3 == 0 else lambda: None)
        gateway.kill()
        assert not upstream.refused
    for number, sent in enumerate(agent.sent):
        assert len(set(sent)) == 1, f"request {number}: {len(set(sent))} different ones"
    last: list[Any] = json.loads(agent.sent[-1][-1])["messages"]
    assert len(last) < len(agent.messages) - 2, "nothing was ever folded"
    with closing(open_store(store)) as opened:
        assert not verify(opened).problems
        [timeline] = opened.list()
        blocks = [event for _, event in opened.read(timeline.id, limit=10_000)]
    said = "\n".join(map(repr, blocks))
    for number in range(1, ROUNDS):
        assert f"I read part {number - 1}." in said
        assert f"result {number}\\n" in said
