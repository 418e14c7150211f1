"""Milliseconds a call on generated logs: an engine lives through a long history, call by call."""

from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter

from benchmarks.material import STARTED_AT, SYSTEM, TOOLS, Writer
from benchmarks.peers.driver import Child, Message, Peer, PeerFailedError
from benchmarks.peers.measure import neutral, options
from blocks import Block, UserPrompt
from persistence import MemoryStore
from persistence.sessions import Session
from timeline.replay._flatten import Flattener
from timeline.replay._lived import Lived
from timeline.tokens import O200kCounter

SIZES = (1_000, 10_000, 100_000)
SECONDS_MAX = 60.0
"""For one engine and one size."""
LAST_CALLS = 100


def speeds(peers: Sequence[Peer], window: int) -> Iterator[tuple[str, list[str]]]:
    """Engine and figures, one for each of the sizes."""
    yield "foldline default", _figures([_ours(size, window) for size in SIZES])
    for peer in peers:
        yield peer.name, _figures([_theirs(peer, size, window) for size in SIZES])


def _figures(found: Sequence[float | str]) -> list[str]:
    return [one if isinstance(one, str) else f"{one:.1f}" for one in found]


def _rounds(blocks: int) -> Iterator[list[Block]]:
    """What is new at each call: a prompt at times, else a response and its result."""
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


def _ours(size: int, window: int) -> float | str:
    chosen = options(window)
    session = Session(name="speed", format="made-up", tools=tuple(TOOLS), system=SYSTEM)
    lived = Lived.begin(session, chosen, MemoryStore(), {})
    began, milliseconds = perf_counter(), list[float]()
    for number, new in enumerate(_rounds(size)):
        at = STARTED_AT + 5 * number
        lived.append(at, new)
        _, ms = lived.render(at)
        milliseconds.append(ms)
        if perf_counter() - began > SECONDS_MAX:
            return _late(number, size)
    return median(milliseconds[-LAST_CALLS:])


def _theirs(peer: Peer, size: int, window: int) -> float | str:
    flattener, milliseconds = Flattener(O200kCounter()), list[float]()
    fixed = flattener.flatten({"tools": TOOLS, "system": [{"type": "text", "text": SYSTEM}]})
    began = perf_counter()
    try:
        with Child(peer) as child:
            child.begin(window, sum(block.tokens for block in fixed))
            for number, new in enumerate(_rounds(size)):
                milliseconds.append(child.step(_messages(new, flattener), wanted=False).ms)
                if perf_counter() - began > SECONDS_MAX:
                    return _late(number, size)
    except PeerFailedError as error:
        return f"failed: {error}"[:40]
    return median(milliseconds[-LAST_CALLS:])


def _late(number: int, size: int) -> str:
    done = min(99, 100 * number * 3 // size)
    return f"> {SECONDS_MAX:.0f} s ({done}%)"


def _messages(blocks: Sequence[Block], flattener: Flattener) -> list[Message]:
    session = Session(name="speed", format="made-up")
    lived = Lived.begin(session, options(10**8), MemoryStore(), {})
    lived.append(STARTED_AT, blocks)
    rendered, _ = lived.render(STARTED_AT)
    found = [(m["role"], block) for m in rendered.messages for block in m["content"]]
    return list(neutral(found, flattener))
