"""Prices of the API by its general rules; the table of models may have a model's own prices."""

from typing import Final

from render.policy._provider import Model, Rates

MINUTES_5: Final = 300
HOUR: Final = 3_600

SHARES: Final = Rates(input=1.0, output=5.0, read=0.1, writes={MINUTES_5: 1.25, HOUR: 2.0})
"""Shares of the input price. (Provider documentation: prompt caching, pricing.)"""


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Prices in dollars per million tokens; some models have other prices for long prompts."""
    return model.rates(prompt_tokens, SHARES)
