"""What the API charges: its general rules, unless the table of models has a price of its own."""

from typing import Final

from render.policy._model import Model, Rates

MINUTES_5: Final = 300
HOUR: Final = 3_600

RULES: Final = (0.1, 1.25, 2.0)
"""A read, a write for 5 minutes and for an hour, as shares of the input.  (Provider documentation: prompt
caching, pricing.)"""


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Dollars per million tokens; some models have other prices for long prompts."""
    if 0 < model.long_prompt_tokens < prompt_tokens:
        price, output = model.long_price_input, model.long_price_output
        own = (model.long_price_read, model.long_price_write_5m, model.long_price_write_1h)
    else:
        price, output = model.price_input, model.price_output
        own = (model.price_read, model.price_write_5m, model.price_write_1h)
    read, write_5m, write_1h = (
        price * rule if given is None else given for given, rule in zip(own, RULES, strict=True)
    )
    return Rates(
        input=price, output=output, read=read, writes={MINUTES_5: write_5m, HOUR: write_1h}
    )
