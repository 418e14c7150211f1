"""What a request costs: in dollars by the model's prices, or in units of ordinary input.

Units compare engines without a model: an ordinary input token is 1, a write 1.25 (5 minutes) or 2 (an
hour), a read 0.1, an output token 5.  Some models read cheaper; dollars know that, units do not.
"""

import attrs
from attrs.validators import ge

from render import Model
from timeline.replay._cache import CacheStep

UNITS_WRITE_5M = 1.25
UNITS_WRITE_1H = 2.0
UNITS_READ = 0.1
UNITS_OUTPUT = 5.0
_MILLION = 1_000_000


@attrs.frozen(kw_only=True)
class SummaryCall:
    """A model call that a compaction made, or would have made."""

    input_tokens: int = attrs.field(default=0, validator=ge(0))
    """The whole input, what was cached included."""
    cached_prefix_tokens: int = attrs.field(default=0, validator=ge(0))
    output_tokens: int = attrs.field(default=0, validator=ge(0))


def units(step: CacheStep) -> float:
    """Cost of a prompt in tokens of ordinary input."""
    return (
        step.uncached
        + UNITS_WRITE_5M * step.write_5m
        + UNITS_WRITE_1H * step.write_1h
        + UNITS_READ * step.read
    )


def summary_units(call: SummaryCall) -> float:
    """Cost of a summary call in tokens of ordinary input."""
    return units(_as_step(call)) + UNITS_OUTPUT * call.output_tokens


def price(step: CacheStep, model: Model) -> float:
    """Cost of a prompt in dollars."""
    rates = _rates(model, step.total)
    return (
        step.uncached * rates.price_input
        + step.write_5m * rates.price_write_5m
        + step.write_1h * rates.price_write_1h
        + step.read * rates.price_read
    ) / _MILLION


def summary_price(call: SummaryCall, model: Model) -> float:
    """Cost of a summary call in dollars, its output included."""
    rates = _rates(model, call.input_tokens)
    return price(_as_step(call), model) + call.output_tokens * rates.price_output / _MILLION


def _as_step(call: SummaryCall) -> CacheStep:
    cached = min(call.cached_prefix_tokens, call.input_tokens)
    return CacheStep(read=cached, uncached=call.input_tokens - cached)


def _rates(model: Model, prompt_tokens: int) -> Model:
    """The model with the prices that a prompt of this length has."""
    if not model.long_prompt_tokens or prompt_tokens <= model.long_prompt_tokens:
        return model
    return attrs.evolve(
        model,
        price_input=model.long_price_input,
        price_output=model.long_price_output,
        price_write_5m=model.long_price_write_5m,
        price_write_1h=model.long_price_write_1h,
        price_read=model.long_price_read,
    )
