"""What the provider charges, unless the table of models has a price of its own."""

from typing import Final

from render.policy._model import Model, Rates

MINUTES_30: Final = 1_800
HOURS_12: Final = 43_200
READ: Final = 0.1
WRITES: Final = {MINUTES_30: 1.25, HOURS_12: 2.5}
"""As shares of the input's price, of models that write at marks.  (Provider documentation: prompt caching,
pricing.)"""


def rates_of(model: Model, prompt_tokens: int) -> Rates:
    """Dollars per million tokens; models that cache every prefix write for nothing."""
    if 0 < model.long_prompt_tokens < prompt_tokens:
        price, output, own = model.long_price_input, model.long_price_output, model.long_price_read
    else:
        price, output, own = model.price_input, model.price_output, model.price_read
    free = {} if model.cache_kind == "marks" else dict.fromkeys(model.cache_ttls, 1.0)
    shares = {**WRITES, **free}
    return Rates(
        input=price,
        output=output,
        read=price * READ if own is None else own,
        writes={seconds: price * share for seconds, share in shares.items()},
    )
