"""An agent that keeps its own history, as real ones do; and a provider that writes down what it was sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import attrs
import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from render import Json
from tests import _http
from timeline._serving import AppServer
from timeline.fake_provider import Call, FakeProvider, FakeServer, Reply
from timeline.gateway import Gateway, GatewayServer

MODEL: Final = "claude-sonnet-5-5"
KEY: Final = "sk-ant-a-key-that-nobody-may-keep"
TOOLS: Final[list[Json]] = [
    {
        "name": "bash",
        "description": "Run a command.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
    }
]
SYSTEM: Final[list[Json]] = [
    {"type": "text", "text": "You are an agent. " * 40},
    {"type": "text", "text": "Work on the task. " * 300, "cache_control": {"type": "ephemeral"}},
]
WORDS: Final = tuple(f"word{n}" for n in range(997))


def words(seed: int, count: int = 150) -> str:
    """A text like no other."""
    return " ".join(WORDS[(seed * 31 + n * 7) % len(WORDS)] for n in range(count))


def working(rounds: int, seed: int = 0) -> Any:
    """A responder: so many rounds with a call each, then an end."""
    count = 0

    def respond(_: Json) -> Reply:
        nonlocal count
        count += 1
        if count > rounds:
            return Reply(text="All done.")
        command = {"command": f"cat file{seed + count}.py"}
        return Reply(text=f"Step {seed + count}.", calls=[Call(name="bash", input=command)])

    return respond


class Clock:
    """Stands still until it is moved on."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def gateway(**options: Any) -> Iterator[GatewayServer]:
    """One that serves."""
    with GatewayServer(gateway=Gateway(**options)) as server:
        yield server


@contextmanager
def provider(responder: Any = None, window: int = 60_000) -> Iterator[FakeServer]:
    """A strict provider."""
    given = {} if responder is None else {"responder": responder}
    with FakeServer(FakeProvider(window=window, **given)) as server:
        yield server


@attrs.define
class Agent:
    """Sends its whole history each time, with a mark on the last block, as Claude Code does."""

    url: str
    said: list[Json] = attrs.field(factory=list[Json])
    headers: dict[str, str] = attrs.field(factory=dict[str, str])
    system: list[Json] = attrs.field(factory=lambda: SYSTEM)
    tools: list[Json] = attrs.field(factory=lambda: TOOLS)
    control: Json = attrs.field(factory=lambda: {"type": "ephemeral"})
    more: Json = attrs.field(factory=dict[str, Any])

    def request(self) -> Json:
        """What it would send now."""
        *before, last = self.said
        content = [*last["content"]]
        content[-1] = {**content[-1], "cache_control": self.control}
        return {
            "model": MODEL,
            "max_tokens": 1_000,
            "system": self.system,
            "tools": self.tools,
            **self.more,
            "messages": [*before, {**last, "content": content}],
        }

    def post(self) -> httpx2.Response:
        """Send it."""
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01", **self.headers}
        url = f"{self.url}/v1/messages?beta=true"
        return _http.post(url, json=self.request(), headers=headers)

    def ask(self) -> Json:
        """Send it; the answer joins the history, and the results of its calls do."""
        response = self.post()
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        self.said.append({"role": "assistant", "content": answer["content"]})
        return answer

    def work(self, prompt: str = "Fix the build.", rounds_max: int = 1_000) -> int:
        """Ask until the model is done; the rounds."""
        if prompt:
            self.say(prompt)
        for count in range(1, rounds_max + 1):
            calls = [c for c in self.ask()["content"] if c["type"] == "tool_use"]
            if not calls:
                return count
            self.said.append({"role": "user", "content": [self._result(call) for call in calls]})
        return rounds_max

    def say(self, text: str) -> None:
        """Of the user's."""
        self.said.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def _result(self, call: Json) -> Json:
        text = words(len(self.said))
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text}


@attrs.frozen
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@attrs.define
class Recording(AppServer):
    """A server that takes anything, and answers with one thing."""

    extra: ClassVar[str] = "fake-provider"
    status: int = 200
    answer: Any = attrs.field(factory=dict[str, Any])
    headers: dict[str, str] = attrs.field(factory=dict[str, str])
    received: list[Received] = attrs.field(factory=list[Received])
    answers: list[tuple[int, Any]] = attrs.field(factory=list[tuple[int, Any]])
    """What it says first."""

    def make_app(self) -> Any:
        """See `AppServer`."""
        every: Sequence[str] = ("GET", "HEAD", "POST", "PUT", "DELETE")
        return Starlette(routes=[Route("/{path:path}", self._take, methods=list(every))])

    async def _take(self, http: Request) -> Response:
        raw: bytes = http.scope["raw_path"] + b"?" * bool(http.scope["query_string"])
        target = (raw + http.scope["query_string"]).decode()
        found = Received(http.method, target, dict(http.headers), await http.body())
        self.received.append(found)
        status, answer = self.answers.pop(0) if self.answers else (self.status, self.answer)
        return JSONResponse(answer, status, self.headers)
