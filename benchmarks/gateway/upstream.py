"""A strict upstream that gives the recorded answers and bills the requests that reach it."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import attrs
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlocksHidden,
    RangeCompacted,
    ToolCall,
)
from persistence import open_store
from persistence.sessions import Item, Responded, Session
from render import Model, provider_of
from timeline.billing import Flattener, RunningBill
from timeline.fake_provider import Call, Exchange, FakeProvider, Reply
from timeline.replay._replay import Clock
from timeline.tokens import counter_for

ROOM: Final = 40_000
"""The tokens for the answer besides the window, so that the fake provider accepts prompts larger than it."""


def as_said(session: Session) -> Session:
    """The session as the fake model gives it: text, then calls; without thinking, which another provider signed."""
    items = (_said(item) for item in session.items)
    return attrs.evolve(session, items=tuple(item for item in items if item.blocks))


def _said(item: Item) -> Item:
    if not isinstance(item, Responded):
        return item
    blocks = [b for b in item.blocks if not isinstance(b, AssistantThinking)]
    texts = [b for b in blocks if isinstance(b, AssistantCompletion) and b.text]
    others = [b for b in blocks if not isinstance(b, AssistantCompletion)]
    if not texts:
        return attrs.evolve(item, blocks=tuple(others))
    said = "\n\n".join(block.text for block in texts)
    one = AssistantCompletion(
        id=texts[0].id, turn=texts[0].turn, response=texts[0].response, text=said
    )
    return attrs.evolve(item, blocks=(one, *others))


def reply_of(response: Responded) -> Reply:
    """The recorded response as an answer of the fake model."""
    texts = [b.text for b in response.blocks if isinstance(b, AssistantCompletion)]
    calls = [Call(b.name, b.input, b.call_id) for b in response.blocks if isinstance(b, ToolCall)]
    return Reply(text="".join(texts), calls=calls)


@attrs.define
class Judge:
    """Bills one way to send a session, by the project's simulated cache."""

    model: Model
    window: int
    bill: RunningBill
    refused: list[str] = attrs.field(init=False, factory=list[str])
    """The upstream's reasons for refusing requests."""
    over: int = attrs.field(init=False, default=0)
    """The number of prompts larger than the window."""
    busts_at: list[float] = attrs.field(init=False, factory=list[float])

    @classmethod
    def of(cls, model: Model, window: int) -> "Judge":
        """A new judge; nothing is sent yet."""
        flattener = Flattener(counter_for("model", model), provider_of(model))
        return cls(model, window, RunningBill(model=model, flattener=flattener))

    def take(self, at: float, request: Mapping[str, Any]) -> None:
        """Bill one request that arrived."""
        sent = self.bill.cache.request(self.bill.flattener.sent(request))
        step = self.bill.bill(at, sent)
        self.over += step.total > self.window
        if step.bust:
            self.busts_at.append(at)


@attrs.define
class Upstream:
    """The fake provider; its model gives scripted answers, and the judge bills each request."""

    judge: Judge
    clock: Clock = attrs.field(factory=Clock)
    next: Reply = attrs.field(init=False, factory=Reply)
    arrived: float = attrs.field(init=False, default=0.0)
    """When the last request had arrived completely, by `perf_counter`."""
    provider: FakeProvider = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.provider = FakeProvider(
            responder=lambda _: self.next,
            window=self.judge.window + ROOM,
            clock=self.clock,
            listener=self._heard,
        )

    def _heard(self, exchange: Exchange) -> None:
        self.provider.exchanges.clear()
        if exchange.error:
            self.judge.refused.append(exchange.error.message)
        else:
            self.judge.take(self.clock.now, exchange.request)

    def timed(self, app: ASGIApp) -> ASGIApp:
        """The provider's app, which also records when requests arrive."""

        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            async def received() -> Message:
                message = await receive()
                if not message.get("more_body"):
                    self.arrived = perf_counter()
                return message

            await app(scope, received, send)

        return noted


def decided(store: Path) -> set[float]:
    """The times at which anything was taken out of a prompt."""
    found = set[float]()
    with closing(open_store(store)) as opened:
        for info in opened.list():
            after = 0
            while page := opened.read(info.id, after=after):
                after = page[-1][0]
                found |= {e.at for _, e in page if isinstance(e, RangeCompacted | BlocksHidden)}
    return found
