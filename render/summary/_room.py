"""The token limits of a summary's parts, and cutting texts and entries to them."""

from collections.abc import Callable, Iterable
from typing import Final

import attrs
import msgspec

from render.policy._context import Context
from render.summary._text import Item, line_of

LIMIT_SHARE: Final = 0.25
"""Share of the prompt's limit that history may have; the prefix may have half of that, statements a
quarter. In a small window, the policy's own limits would leave no room for the work."""

FOUND_SHARE: Final = 2.0
"""Room for the agent's statements, as a multiple of the policy's room for history."""


@attrs.frozen(kw_only=True)
class SummaryRoom:
    """The token limits of a summary's parts, and the token counter."""

    history: int
    prefix: int
    """For the beginning of a split turn."""
    count: Callable[[str], int] = attrs.field(repr=False)
    found: int = attrs.field(default=attrs.Factory(lambda self: self.history, takes_self=True))
    """For the agent's statements, which are quoted without a model."""

    @classmethod
    def of(cls, context: Context) -> "SummaryRoom":
        """The policy's limits, bounded by the share of the prompt."""
        policy, most = context.policy, int(LIMIT_SHARE * context.capacity)
        return cls(
            history=min(policy.summary_tokens, most),
            prefix=min(policy.prefix_tokens, most // 2),
            count=context.counter.count,
            found=min(int(FOUND_SHARE * policy.summary_tokens), most // 4),
        )

    def size(self, item: Item) -> int:
        """Tokens of a list entry as it is shown."""
        return self.count(f"- {line_of(item)}\n")

    def shortened(self, text: str, tokens_max: int) -> str:
        """The beginning of a text, in at most `tokens_max` tokens."""
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
        """The first items that fit together into `tokens_max`, each cut to `each_max`."""
        kept: list[Item] = []
        for item in items:
            short, size = item, self.size(item)
            if size > each_max:
                short = self._cut(item, each_max)
                size = self.size(short)
            tokens_max -= size
            if tokens_max < 0:
                break
            kept.append(short)
        return tuple(kept)

    def _cut(self, item: Item, tokens_max: int) -> Item:
        if isinstance(item, str):
            return self.shortened(item, tokens_max - self.size(""))
        names = [name for name in item.__struct_fields__ if name != "priority"]
        each = tokens_max // len(names)
        texts = {name: self.shortened(getattr(item, name), each) for name in names}
        return msgspec.structs.replace(item, **texts)
