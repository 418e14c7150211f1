"""Prices a request: in dollars by the model's prices, or in units of ordinary input.

Units compare engines independently of a model: an input token is 1, an output token 5, a cached read or
write costs the provider's general rate.  A model's own cheaper reads count in dollars only.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
from attrs.validators import ge
from msgspec.structs import replace

from blocks import UsageRecorded
from blocks.formats import count, obj
from render import Json, Model, Rates, Rendered, provider_of
from timeline._models import model_named, priced_model
from timeline.billing._prompt_cache import (
    CacheRequest,
    CacheStep,
    Flattener,
    PromptCache,
)

_MILLION = 1_000_000
_MINUTES_5 = 300
_NOTHING: Final[Json] = {}
ORDINARY = Model(name="ordinary", known=True, price_input=1.0, price_output=5.0)
"""A model whose prices are the units."""


@attrs.frozen(kw_only=True)
class SummaryCall:
    """A model call that a compaction made, or would have made."""

    input_tokens: int = attrs.field(default=0, validator=ge(0))
    """The whole input, cached tokens included."""
    cached_prefix_tokens: int = attrs.field(default=0, validator=ge(0))
    output_tokens: int = attrs.field(default=0, validator=ge(0))


@attrs.define(kw_only=True)
class RunningBill:
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
    ttl_min: float = 0.0
    """As `PromptCache.ttl_min`."""
    cache: PromptCache = attrs.field(init=False)
    _ordinary: Rates = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.cache = PromptCache.of(self.model, self.ttl_min)
        self._ordinary = ordinary_rates(self.model)

    def send(self, ts: float, rendered: Rendered) -> CacheStep:
        """Bill one request, sent at `ts` (seconds)."""
        return self.bill(ts, self.request(rendered))

    def request(self, rendered: Rendered) -> CacheRequest:
        """A rendered request, as the cache sees it."""
        blocks = self.flattener.flatten(rendered.system, rendered.tools, rendered.messages)
        return self.cache.request(blocks)

    def bill(self, ts: float, request: CacheRequest) -> CacheStep:
        """Bill one request of `request`, sent at `ts` (seconds)."""
        step = self.cache.send(ts, request)
        self.dollars += price(step, self.model)
        self.units += self._ordinary.cost(step.uncached, step.read, step.written)
        self.read += step.read
        self.write += step.write
        self.uncached += step.uncached
        self.busts += step.bust
        return step

    def summarized(self, calls: Sequence[SummaryCall]) -> None:
        """Bill the model calls that a compaction made, or would have made."""
        self.summary_dollars += sum(summary_price(call, self.model) for call in calls)
        self.summary_units += sum(summary_cost(call, self._ordinary) for call in calls)


def company_of(provider: str) -> str:
    """The company that offers an API, and bills for it; one may offer several."""
    return provider.partition(".")[0]


def price(step: CacheStep, model: Model, output: int = 0) -> float:
    """Cost of a prompt in dollars, and of the tokens of its answer."""
    rates = provider_of(model).rates(model, step.total)
    return rates.cost(step.uncached, step.read, step.written, output) / _MILLION


def usage_price(
    usage: UsageRecorded, model: Model, response: Json = _NOTHING, ttl: int = 0
) -> float:
    """Cost of a call in dollars, by the usage that the provider reported in `response`; its output included.

    `ttl`: as in `usage_written`, if the response does not say.
    """
    if by_time := obj(obj(response.get("usage")).get("cache_creation")):  # as Anthropic says it
        hour, ttl = count(by_time.get("ephemeral_1h_input_tokens")), _MINUTES_5
        usage = replace(usage, cache_write_long=hour)
    rates, written = provider_of(model).rates(model, usage.input), usage_written(usage, model, ttl)
    return rates.cost(usage.uncached, usage.cache_read, written, usage.output) / _MILLION


def dollars_of(own: Model, usage: UsageRecorded) -> float | None:
    """Cost of a call of a timeline with the model `own` in dollars, as it was billed or by the prices of the model that
    answered; None: these are not known. A model that is in no table, but described, has the prices of its description."""
    if usage.bill is not None:
        return usage.bill.paid
    answered = model_named(usage.model) if usage.model else own
    is_described = own.known and (usage.model == own.name or not answered.known)
    model = own if is_described else priced_model(answered.name)
    return None if model is None else usage_price(usage, model)


def usage_written(usage: UsageRecorded, model: Model, ttl: int = 0) -> dict[int, int]:
    """The tokens that a call wrote to the cache, by the seconds that they are kept.

    `ttl`: the seconds for which tokens are kept that were not reported as kept longer; 0: the model's shortest time.
    """
    times = provider_of(model).rates(model, usage.input).writes
    written = Counter({ttl or min(times, default=0): usage.cache_write - usage.cache_write_long})
    written[max(times, default=0)] += usage.cache_write_long
    return {seconds: tokens for seconds, tokens in written.items() if tokens}


def with_read(step: CacheStep, read: int) -> CacheStep:
    """A simulated step, given what was really read."""
    written, more = dict(step.written), read - step.read
    if more < 0 and written:
        written[max(written, key=lambda ttl: written[ttl])] -= more
        return attrs.evolve(step, read=read, written=written)
    for ttl in sorted(written, reverse=True):
        taken = min(written[ttl], max(more, 0))
        written[ttl], more = written[ttl] - taken, more - taken
    return attrs.evolve(step, read=read, written=written, uncached=step.uncached - more)


def ordinary_rates(model: Model) -> Rates:
    """The rates of the model's provider in tokens of ordinary input, without a model's own discounts."""
    kind, ttls = model.cache_kind, model.cache_ttls
    ordinary = attrs.evolve(ORDINARY, provider=model.provider, cache_kind=kind, cache_ttls=ttls)
    return provider_of(model).rates(ordinary, 0)


def summary_price(call: SummaryCall, model: Model) -> float:
    """Cost of a summary call in dollars."""
    return summary_cost(call, provider_of(model).rates(model, call.input_tokens)) / _MILLION


def summary_cost(call: SummaryCall, rates: Rates) -> float:
    """Cost of a summary call at these rates, its output included."""
    cached = min(call.cached_prefix_tokens, call.input_tokens)
    return rates.cost(call.input_tokens - cached, cached, {}, call.output_tokens)
