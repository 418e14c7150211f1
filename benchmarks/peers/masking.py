"""Masking: old tool outputs replaced by one line, everything else kept; the simplest engine that agents use.

When a request would exceed nine tenths of the window, the outputs of the oldest results are masked until the newest
ones have 0.35 of the window, which is what the other peers keep. What is masked stays masked, so the cache survives
between two maskings. Prompts, answers and calls are never touched: a session with too many of them does not fit.
"""

from collections.abc import Sequence
from time import perf_counter

import attrs

from benchmarks.peers.driver import KEEP_RATIO, TRIGGER_RATIO, Answer, Message
from timeline.tokens import O200kCounter

MASK = "[old tool output left out: {lines} lines]"


@attrs.define(kw_only=True)
class Masking:
    """The messages of one session, and which of their outputs are masked."""

    window: int
    fixed_tokens: int
    """The tokens of system prompt and tools."""
    messages: list[Message] = attrs.field(factory=list[Message])
    masked_until: int = 0
    """Outputs of messages before this one are masked."""
    _counter: O200kCounter = attrs.field(init=False, factory=O200kCounter)

    def step(self, new: Sequence[Message]) -> Answer:
        """Add the new messages, mask if there are too many tokens, and return what is sent."""
        began = perf_counter()
        self.messages += new
        tokens = self.fixed_tokens + sum(tokens_of(message) for message in self.messages)
        if tokens > TRIGGER_RATIO * self.window:
            self._mask()
        return Answer(
            messages=list(self.messages), summaries=[], ms=1_000 * (perf_counter() - began)
        )

    def _mask(self) -> None:
        kept, end = 0, len(self.messages)
        while end and kept + tokens_of(self.messages[end - 1]) <= KEEP_RATIO * self.window:
            end -= 1
            kept += tokens_of(self.messages[end])
        for at in range(self.masked_until, end):
            if self.messages[at]["role"] == "tool":
                self.messages[at] = self._without_output(self.messages[at])
        self.masked_until = max(self.masked_until, end)

    def _without_output(self, message: Message) -> Message:
        """The result with one line in place of its output, unless the output is not longer than that."""
        text = str(message["text"])
        mask = MASK.format(lines=len(text.splitlines()))
        saved = self._counter.count(text) - self._counter.count(mask)
        return (
            {**message, "text": mask, "tokens": message["tokens"] - saved} if saved > 0 else message
        )


def tokens_of(message: Message) -> int:
    """The tokens of a message with its calls."""
    return int(message["tokens"]) + sum(int(call["tokens"]) for call in message.get("calls", ()))
