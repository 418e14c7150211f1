"""The running bill of one engine: sends its requests through the simulated cache and prices them."""

from collections.abc import Iterable, Sequence

import attrs

from render import Model, Rendered
from timeline.replay._cache import CacheStep, FlatBlock, PromptCache
from timeline.replay._flatten import Flattener
from timeline.replay._price import SummaryCall, price, summary_price, summary_units, units


@attrs.define(kw_only=True)
class Bill:
    """The requests sent so far and their cost."""

    model: Model
    flattener: Flattener
    dollars: float = 0.0
    units: float = 0.0
    """The cost in tokens of ordinary input, without a model's own discounts."""
    read: int = 0
    write: int = 0
    uncached: int = 0
    busts: int = 0
    summary_dollars: float = 0.0
    summary_units: float = 0.0
    _cache: PromptCache = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cache = PromptCache.of(self.model)

    def send(self, ts: float, rendered: Rendered) -> CacheStep:
        """Bill one request, sent at `ts` (seconds)."""
        request = {
            "tools": rendered.tools,
            "system": rendered.system,
            "messages": rendered.messages,
        }
        return self.charge(ts, self.flattener.flatten(request))

    def charge(self, ts: float, blocks: Iterable[FlatBlock]) -> CacheStep:
        """Bill one flattened request, sent at `ts` (seconds)."""
        step = self._cache.step(ts, blocks)
        self.dollars += price(step, self.model)
        self.units += units(step, self.model)
        self.read += step.read
        self.write += step.write
        self.uncached += step.uncached
        self.busts += step.bust
        return step

    def summarized(self, calls: Sequence[SummaryCall]) -> None:
        """Bill the model calls that a compaction made, or would have made."""
        self.summary_dollars += sum(summary_price(call, self.model) for call in calls)
        self.summary_units += sum(summary_units(call, self.model) for call in calls)
