"""Prices a request: in dollars by the model's prices, or in units of ordinary input.

Units compare engines independently of a model: an input token is 1, an output token 5, a cached read or
write costs the provider's general rate.  A model's own cheaper reads count in dollars only.
"""

import attrs
from attrs.validators import ge

from render import Model, Rates, provider_of
from timeline.replay._cache import CacheStep

_MILLION = 1_000_000
_ORDINARY = Model(name="ordinary", price_input=1.0, price_output=5.0)
"""A model whose prices are the units."""


@attrs.frozen(kw_only=True)
class SummaryCall:
    """A model call that a compaction made, or would have made."""

    input_tokens: int = attrs.field(default=0, validator=ge(0))
    """The whole input, cached tokens included."""
    cached_prefix_tokens: int = attrs.field(default=0, validator=ge(0))
    output_tokens: int = attrs.field(default=0, validator=ge(0))


def units(step: CacheStep, model: Model) -> float:
    """Cost of a prompt in tokens of ordinary input."""
    return _ordinary(model).cost(step.uncached, step.read, step.written)


def summary_units(call: SummaryCall, model: Model) -> float:
    """Cost of a summary call in tokens of ordinary input."""
    return _summary(call, _ordinary(model))


def price(step: CacheStep, model: Model) -> float:
    """Cost of a prompt in dollars."""
    rates = provider_of(model).rates(model, step.total)
    return rates.cost(step.uncached, step.read, step.written) / _MILLION


def summary_price(call: SummaryCall, model: Model) -> float:
    """Cost of a summary call in dollars, its output included."""
    return _summary(call, provider_of(model).rates(model, call.input_tokens)) / _MILLION


def _ordinary(model: Model) -> Rates:
    kind, ttls = model.cache_kind, model.cache_ttls
    ordinary = attrs.evolve(_ORDINARY, provider=model.provider, cache_kind=kind, cache_ttls=ttls)
    return provider_of(model).rates(ordinary, 0)


def _summary(call: SummaryCall, rates: Rates) -> float:
    cached = min(call.cached_prefix_tokens, call.input_tokens)
    return rates.cost(call.input_tokens - cached, cached, {}, call.output_tokens)
