"""A conversation that grows, timelines that ask a model for summaries, and responders that answer."""

import json
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

from render import Json, Policy
from tests._builders import Clock, Ids, open_timeline, response, text, tool_use
from timeline import AsyncTimeline, ModelSummarizer, Timeline
from timeline.fake_provider import FakeServer, Reply, wants_summary

MODEL = "claude-sonnet-5-5"
SYSTEM = "You keep the books of a small shop, and you are careful. " * 40
TASK = "Reconcile the ledger of 2026.  Never  touch db-2!"
WINDOW = 12_000
SMALL = Policy(
    trigger_ratio=0.9,
    clip_ratio=0.06,
    page_tokens=14_000,
    rungs=("summarize",),
    keep_ratio=0.1,
    prepare_ratio=1.0,
    turns_intact=12,
    rounds_intact=80,
)


def options(**changes: Any) -> dict[str, Any]:
    """What every timeline here is opened with, unless told otherwise."""
    given = {
        "model": MODEL,
        "counter": "model",
        "window": WINDOW,
        "policy": SMALL,
        "validate": True,
    }
    return {"ids": Ids(), "clock": Clock(), **given, **changes}


def opened(client: Any, name: str = "talk", **changes: Any) -> Timeline:
    """A sync timeline with a small window whose summaries a model writes."""
    return open_timeline(name, **options(**_summarized(client, changes)))


async def aopened(client: Any, name: str = "talk", **changes: Any) -> AsyncTimeline:
    """The same for asyncio."""
    return await AsyncTimeline.open(name, **options(**_summarized(client, changes)))


NOBODY = SimpleNamespace(messages=None)
"""A client that is not called."""


def _summarized(client: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, with a summariser that calls the client."""
    return {"summarizer": ModelSummarizer(client=client or NOBODY), **changes}


def turn(number: int, lines: int = 40) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What happens in one turn, as method names and arguments: a question, a call, an answer."""
    asked = TASK if number == 0 else f"Go on with account {number} of src/book_{number}.py."
    yield "user", (asked,)
    call = tool_use(f"toolu_{number}", "read", path=f"src/book_{number}.py")
    yield "record", (response(call, id=f"msg_{number}a"),)
    found = "\n".join(f"entry {number}.{n}: {n * 37 % 997} EUR" for n in range(lines))
    yield "tool_result", (f"toolu_{number}", found)
    yield "record", (response(text(f"Account {number} is settled."), id=f"msg_{number}b"),)


def talk(timeline: Timeline, turns: int, first: int = 0, **options: Any) -> None:
    """Some turns, without a render."""
    for number in range(first, first + turns):
        for name, arguments in turn(number, **options):
            getattr(timeline, name)(*arguments)


async def atalk(timeline: AsyncTimeline, turns: int, first: int = 0) -> None:
    """The same for asyncio."""
    for number in range(first, first + turns):
        for name, arguments in turn(number):
            awaitable: Awaitable[object] = getattr(timeline, name)(*arguments)
            await awaitable


def summary_requests(server: FakeServer) -> list[Json]:
    """The requests for a summary that were paid for, good answers or not."""
    return [e.request for e in server.provider.exchanges if wants_summary(e.request) and e.message]


def answering(*answers: Reply | dict[str, Any] | str) -> Callable[[Json], Reply]:
    """A responder that answers with these, one after the other, the last one for ever."""
    left = [a if isinstance(a, Reply) else Reply(text=_text(a)) for a in answers]
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def _text(answer: dict[str, Any] | str) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)
