"""What the provider charges, unless the table of models has a price of its own."""

from render.policy._model import Model, Rates


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Dollars per million tokens; what is kept of a prompt costs nothing on top."""
    writes = dict.fromkeys(model.cache_ttls, 1.0)
    return model.rates(prompt_tokens, Rates(input=1.0, output=5.0, read=0.1, writes=writes))
