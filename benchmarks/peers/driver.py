"""Runs a peer in its own environment, as a child process that is asked call by call."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self

import attrs
import msgspec

from timeline.billing import SummaryCall

HERE = Path(__file__).resolve().parent
PLACES = HERE.parents[1] / ".peers"
Message = dict[str, Any]
_END_SECONDS_MAX = 10.0
TRIGGER_RATIO = 0.9
"""The share of the window at which a peer compacts."""
KEEP_RATIO = 0.35
"""The share of the window that it keeps as it is."""


@attrs.frozen(kw_only=True)
class Peer:
    """An adapter, and the environment of the library that it drives."""

    name: str
    adapter: str
    place: str
    command: tuple[str, ...] = ("bin/python", "-W", "ignore")
    """The interpreter, inside the peer's environment."""
    python_min: tuple[int, int] = (3, 11)
    arguments: tuple[str, ...] = ()
    """Arguments of the adapter."""
    is_gateway: bool = False
    """Whether it is a gateway, which changes requests with the whole history and the client's marks."""
    is_marked: bool = True
    """Whether a gateway receives the client's cache marks; otherwise they are set on its output."""

    @property
    def folder(self) -> Path:
        """The folder of its environment."""
        return PLACES / self.place

    @property
    def line(self) -> list[str]:
        """The command that starts its adapter."""
        interpreter, *options = self.command
        adapter = str(HERE / "adapters" / self.adapter)
        return [str(self.folder / interpreter), *options, adapter, *self.arguments]


PEERS = (
    Peer(name="langchain", adapter="langchain_summary.py", place="langchain"),
    Peer(name="pydantic-ai-harness", adapter="pydantic_tiered.py", place="pydantic-ai"),
    Peer(name="strands", adapter="strands_summary.py", place="strands"),
    Peer(name="agent-framework", adapter="agent_framework_summary.py", place="agent-framework"),
    Peer(name="openhands", adapter="openhands_condenser.py", place="openhands", python_min=(3, 12)),
    Peer(name="pi", adapter="pi.mjs", place="pi", command=("node_modules/.bin/node",)),
)


def _gateway(name: str, adapter: str, place: str, *arguments: str, is_marked: bool = True) -> Peer:
    return Peer(
        name=name,
        adapter=adapter,
        place=place,
        arguments=arguments,
        is_gateway=True,
        is_marked=is_marked,
    )


GATEWAYS = (
    _gateway("headroom library", "headroom_library.py", "headroom"),
    _gateway("headroom proxy, cache", "headroom_proxy.py", "headroom", "cache"),
    _gateway("headroom proxy, token", "headroom_proxy.py", "headroom", "token"),
    _gateway("llmtrim", "llmtrim_compress.py", "llmtrim"),
    _gateway("llmtrim, marks behind", "llmtrim_compress.py", "llmtrim", is_marked=False),
    _gateway("litellm", "litellm_compress.py", "litellm"),
    _gateway("litellm, marks behind", "litellm_compress.py", "litellm", is_marked=False),
)
"""The peers that run between an unchanged agent and its provider."""


@attrs.frozen(kw_only=True)
class Answer:
    """What a peer would send for one call."""

    messages: list[Message]
    summaries: list[SummaryCall]
    ms: float


class PeerFailedError(Exception):
    """The child ended, or its answer was invalid."""


@attrs.define
class Child:
    """A running adapter; a context manager."""

    peer: Peer
    ready: str = ""
    _process: subprocess.Popen[bytes] = attrs.field(init=False)
    _errors: IO[bytes] = attrs.field(init=False)

    def __enter__(self) -> Self:
        """Start it."""
        self._errors = TemporaryFile()  # one per child, since several sessions run at once
        self._process = subprocess.Popen(
            self.peer.line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End it by closing its input; it then ends what it has started."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def begin(self, window: int, fixed_tokens: int) -> None:
        """Begin a new session; `fixed_tokens` are those of system prompt and tools."""
        task = {
            "window": window,
            "trigger": int(TRIGGER_RATIO * window) - fixed_tokens,
            "keep": int(KEEP_RATIO * window),
            "fixed": fixed_tokens,
        }
        self.ready = self._ask({"begin": task})["ready"]

    def changed(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        """A request as changed by a gateway, and the milliseconds that it took."""
        answer = self._ask({"request": request})
        return answer["request"], answer["ms"]

    def step(self, new: Sequence[Mapping[str, Any]], *, wanted: bool = True) -> Answer:
        """Pass on the new messages; returns what would be sent, if `wanted`."""
        answer = self._ask({"new": new, "wanted": wanted})
        calls = [
            SummaryCall(input_tokens=s["input_tokens"], output_tokens=s["output_tokens"])
            for s in answer["summaries"]
        ]
        return Answer(messages=answer["messages"], summaries=calls, ms=answer["ms"])

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise PeerFailedError(self._last_words())
        answer: dict[str, Any] = msgspec.json.decode(line)
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it ended without a word"
