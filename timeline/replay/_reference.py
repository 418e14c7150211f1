"""The reference for every replay: send everything, with good cache marks."""

import attrs

from persistence import MemoryStore
from persistence.sessions import Item, Responded, Session
from render import Policy
from timeline.replay._bill import Bill
from timeline.replay._options import ReplayOptions
from timeline.replay._replay_timeline import ReplayTimeline

_NEVER = 10**9

EVERYTHING = Policy(
    name="everything",
    trigger_tokens=_NEVER,
    trigger_ratio=1.0,
    cold_ratio=1.0,
    clip_ratio=1.0,
    turns_intact=_NEVER,
    turns_visible=_NEVER,
    rounds_intact=_NEVER,
    rounds_visible=_NEVER,
    prune_tokens_min=_NEVER,
)
"""A policy that prunes, clips and compacts nothing."""


@attrs.frozen(kw_only=True)
class FullHistory:
    """The same session, replayed without a limit on the prompt."""

    replayed: ReplayTimeline
    bill: Bill

    @classmethod
    def begin(cls, session: Session, options: ReplayOptions, bill: Bill) -> "FullHistory":
        """Start the reference; nothing is sent yet."""
        replayed = ReplayTimeline.begin(
            session, options, MemoryStore(), {"policy": EVERYTHING, "window": _NEVER}
        )
        return cls(replayed=replayed, bill=bill)

    def step(self, item: Item) -> int:
        """Replay one item of the session; returns the tokens of its request, 0 if it has none."""
        tokens = 0
        if isinstance(item, Responded):
            rendered, _ = self.replayed.render(item.at)
            tokens = self.bill.send(item.at, rendered).total
        self.replayed.append(item.at, item.blocks)
        return tokens
