"""Prices of the API by its general rules; the table of models may have a model's own prices."""

from typing import Final

from render.policy._provider import Model, Rates

MINUTES_30: Final = 1_800
HOURS_12: Final = 43_200
WRITES: Final = {MINUTES_30: 1.25, HOURS_12: 2.5}
"""Cache writes as shares of the input price, for models that cache at marks. (Provider documentation:
prompt caching, pricing.)"""


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Prices in dollars per million tokens; for models that cache every prefix, writes cost nothing extra."""
    free = {} if model.cache_kind == "marks" else dict.fromkeys(model.cache_ttls, 1.0)
    shares = Rates(input=1.0, output=5.0, read=0.1, writes={**WRITES, **free})
    return model.rates(prompt_tokens, shares)
