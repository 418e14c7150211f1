"""Converts litellm's list of prices and windows (`model_prices_and_context_window.json`) to rows of the model table.

Its prices are dollars per token.  Its largest input is the window for some models, and the prompt without the answer
for others; so it is used only as the window of models that are not known otherwise.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

PROVIDERS: Final = {
    "openai": "openai.responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
"""Our names of its providers. Models of other providers are left out, because they are hosted under many names."""
_MODES: Final = ("chat", "responses")
_MILLION: Final = 1_000_000
_LONG: Final = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
_LIMITS: Final = ("tokens_window", "output_tokens_max")
_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_READ, _WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_LATER: Final = {"anthropic": "_above_1hr", "openai.responses": "_above_12hr"}
"""The suffix of its price for cache writes with the longer lifetime."""


def rows_of_litellm(
    data: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """A row for each language model of a known provider that has a window and a price. A model that is already in the
    table gets only its prices; other names of such a model get no row.

    Raises:
        ValueError: there is no such model.
    """
    found = {row["name"]: row for key, entry in data.items() for row in _rows(key, entry)}
    aliases = {alias for row in known.values() for alias in row.get("aliases", ())}
    rows: dict[str, dict[str, Any]] = {}
    for name, row in found.items():
        undated = _DATE.sub("", name)
        if name in aliases or (name != undated and (undated in found or undated in known)):
            continue
        own = _LIMITS if name in known else ()
        rows[name] = {field: value for field, value in row.items() if field not in own}
    if not rows:
        raise ValueError(
            f"no language model of {', '.join(PROVIDERS)} with max_input_tokens, max_output_tokens, "
            f"{_INPUT} and {_OUTPUT} is in it"
        )
    return rows


def _rows(key: str, given: object) -> Iterator[dict[str, Any]]:
    """The row of an entry, if it is a language model of a known provider."""
    entry = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if entry.get("mode") not in _MODES:
        return
    provider = PROVIDERS.get(str(entry.get("litellm_provider")))
    needed = ("max_input_tokens", "max_output_tokens", _INPUT, _OUTPUT)
    if provider is None or not all(isinstance(entry.get(field), int | float) for field in needed):
        return
    row = {
        "name": key.removeprefix("gemini/"),
        "provider": provider,
        "tokens_window": int(entry["max_input_tokens"]),
        "output_tokens_max": int(entry["max_output_tokens"]),
        **_prices(entry, provider, "", "price_"),
    }
    if provider == "openai.responses" and _WRITE in entry:
        row["cache"] = "openai-marks"
    if least := entry.get("prompt_cache_min_tokens"):
        row["cache_tokens_min"] = int(least)
    if long := next(filter(None, map(_LONG.fullmatch, entry)), None):
        row["long_prompt_tokens"] = int(long[1]) * 1_000
        row |= _prices(entry, provider, f"_above_{long[1]}k_tokens", "long_price_")
    yield row


def _prices(
    entry: Mapping[str, Any], provider: str, suffix: str, prefix: str
) -> dict[str, float | list[float]]:
    """The prices for prompts of one length, under our names."""

    def dollars(field: str) -> float | None:
        found = entry.get(field + suffix)
        return round(found * _MILLION, 6) if isinstance(found, int | float) else None

    paid = dollars(_INPUT) or 0.0
    prices: dict[str, float | list[float]] = {f"{prefix}input": paid}
    prices[f"{prefix}output"] = dollars(_OUTPUT) or 0.0
    if (read := dollars(_READ)) is not None:
        prices[f"{prefix}read"] = read
    writes = [dollars(_WRITE), dollars(_WRITE + later)] if (later := _LATER.get(provider)) else []
    known = [price for price in writes if price is not None]
    prices[f"{prefix}writes"] = known if known == writes else []  # empty: the provider's rule
    return prices
