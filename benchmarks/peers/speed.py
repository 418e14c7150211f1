"""Measures milliseconds per call on generated logs: each engine runs through a long history, call by call."""

from collections.abc import Iterator, Sequence
from functools import cache
from statistics import median
from time import perf_counter

from benchmarks.material import BLOCKS_PER_ROUND, STARTED_AT, SYSTEM, TOOLS, Writer
from benchmarks.peers.driver import Child, Message, Peer, PeerFailedError
from benchmarks.peers.measure import options
from blocks import AssistantCompletion, Block, ToolCall, ToolResult, UserPrompt, text_of
from persistence.sessions import Session
from render import PROVIDERS
from timeline.billing import Flattener
from timeline.replay._replay import ReplayTimeline
from timeline.tokens import O200kCounter

SIZES = (1_000, 10_000, 100_000)
SECONDS_MAX = 25.0
"""The time limit for one engine and size; ours always runs to the end, to have a figure."""
LAST_CALLS = 100


def speeds(peers: Sequence[Peer], window: int) -> Iterator[tuple[str, list[str]]]:
    """Each engine with its figures, one for each size."""
    yield "foldline default", [_ours(size, window) for size in SIZES]
    for peer in peers:
        yield peer.name, [_theirs(peer, size, window) for size in SIZES]


def _rounds(blocks: int) -> Iterator[list[Block]]:
    """The new blocks of each call: sometimes a prompt, otherwise a response and its result."""
    writer, written, pending = Writer(seed=11), 0, list[Block]()
    while written < blocks:
        for block in writer.round():
            pending.append(block)
            written += 1
            if isinstance(block, UserPrompt):
                yield pending
                pending = []
        yield pending
        pending = []


def _ours(size: int, window: int) -> str:
    session = Session(name="speed", format="made-up", tools=tuple(TOOLS), system=SYSTEM)
    replayed = ReplayTimeline.begin(session, options(window), {})
    milliseconds = list[float]()
    for number, new in enumerate(_rounds(size)):
        at = STARTED_AT + 5 * number
        replayed.append(at, new)
        milliseconds.append(replayed.render(at)[1])
    return _last(milliseconds)


def _theirs(peer: Peer, size: int, window: int) -> str:
    flat = Flattener(_counter(), PROVIDERS["anthropic"]).flatten(
        [{"type": "text", "text": SYSTEM}], TOOLS
    )
    milliseconds = list[float]()
    try:
        with Child(peer) as child:
            child.begin(window, sum(block.tokens for block in flat))
            began = perf_counter()
            for new in _rounds(size):
                milliseconds.append(child.step(_messages(new), wanted=False).ms)
                if perf_counter() - began > SECONDS_MAX:
                    return _late(milliseconds)
    except PeerFailedError as error:
        return f"failed: {error}"[:40]
    return _last(milliseconds)


def _last(milliseconds: Sequence[float]) -> str:
    return f"{median(milliseconds[-LAST_CALLS:]):.2f}"


def _late(milliseconds: Sequence[float]) -> str:
    """The figure of an engine that reached the time limit."""
    blocks = len(milliseconds) * BLOCKS_PER_ROUND
    return f"{_last(milliseconds)} (at {blocks // 1_000}k, {SECONDS_MAX:.0f} s)"


@cache
def _counter() -> O200kCounter:
    return O200kCounter()


def _messages(blocks: Sequence[Block]) -> list[Message]:
    """Messages in the form of recorded ones; a response is one message."""
    found: list[Message] = []
    count = _counter().count
    for block in blocks:
        match block:
            case UserPrompt():
                text = block.text
                found.append({"role": "user", "text": text, "tokens": count(text) + 3})
            case AssistantCompletion():
                said = {"text": block.text, "tokens": count(block.text) + 3}
                found.append({"role": "assistant", "calls": [], **said})
            case ToolCall():
                call = {"id": block.call_id, "name": block.name, "input": block.input}
                found[-1]["calls"].append({**call, "tokens": count(str(block.input)) + 15})
            case ToolResult():
                text = text_of(block)
                told = {"text": text, "tokens": count(text) + 15}
                found.append({"role": "tool", "id": block.call_id, "error": False, **told})
            case _:
                pass
    return found
