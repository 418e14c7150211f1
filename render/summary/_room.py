"""The room that a summary has, and how a text or an entry is cut to a part of it."""

from collections.abc import Callable, Iterable
from typing import Final

import attrs
import msgspec

from render.policy._context import Context
from render.summary._text import Item, line_of

LIMIT_SHARE: Final = 0.25
"""Of the prompt's limit, what history may have, half of it the prefix, and a quarter of it statements: in a
small window the room that policy gives would leave nothing for the work."""

FOUND_SHARE: Final = 2.0
"""Of the room that policy gives to history, what statements of the agent's have beside it."""


@attrs.frozen(kw_only=True)
class SummaryRoom:
    """What the parts of a summary may have, in tokens, and what counts them."""

    history: int
    prefix: int
    """The beginning of a split turn."""
    count: Callable[[str], int] = attrs.field(repr=False)
    found: int = attrs.field(default=attrs.Factory(lambda self: self.history, takes_self=True))
    """What the agent stated, quoted without a model: more than history, less in a small window."""

    @classmethod
    def of(cls, context: Context) -> "SummaryRoom":
        """What a policy gives, within its share of the prompt."""
        policy, most = context.policy, int(LIMIT_SHARE * context.limit)
        return cls(
            history=min(policy.summary_tokens, most),
            prefix=min(policy.prefix_tokens, most // 2),
            count=context.counter.count,
            found=min(int(FOUND_SHARE * policy.summary_tokens), most // 4),
        )

    def size(self, item: Item) -> int:
        """Tokens of an entry of a list as it is shown."""
        return self.count(f"- {line_of(item)}\n")

    def shortened(self, text: str, tokens_max: int) -> str:
        """The beginning of a text, in at most so many tokens."""
        if self.count(text) <= tokens_max:
            return text
        keep = min(len(text), 16 * max(tokens_max, 0))
        while keep > 0:
            short = text[:keep].rstrip() + "…"
            if (tokens := self.count(short)) <= tokens_max:
                return short
            keep = min(keep * tokens_max // tokens, keep - 1)
        return ""

    def first(self, items: Iterable[Item], tokens_max: int, each_max: int) -> tuple[Item, ...]:
        """The first of the items that have so many tokens together, each cut to its share."""
        kept: list[Item] = []
        for item in items:
            short = self._cut(item, each_max)
            tokens_max -= self.size(short)
            if tokens_max < 0:
                break
            kept.append(short)
        return tuple(kept)

    def _cut(self, item: Item, tokens_max: int) -> Item:
        if self.size(item) <= tokens_max:
            return item
        if isinstance(item, str):
            return self.shortened(item, tokens_max - self.size(""))
        names = [name for name in item.__struct_fields__ if name != "priority"]
        each = tokens_max // len(names)
        texts = {name: self.shortened(getattr(item, name), each) for name in names}
        return msgspec.structs.replace(item, **texts)
