"""Prices of the API by its general rules; the table of models may have a model's own prices."""

from render.policy._provider import Model, Rates


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Prices in dollars per million tokens; cache writes cost no more than ordinary input."""
    writes = dict.fromkeys(model.cache_ttls, 1.0)
    return model.rates(prompt_tokens, Rates(input=1.0, output=5.0, read=0.1, writes=writes))
