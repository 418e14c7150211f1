"""The table of providers: one for each API, each in a folder of its own."""

from collections.abc import Mapping
from typing import Final

from blocks import MisuseError, Part, did_you_mean
from render.policy._context import Model, Provider, Where
from render.providers._answers import OVERFLOW_TEXTS as OVERFLOW_TEXTS
from render.providers._answers import overflow_of as overflow_of
from render.providers.anthropic import ANTHROPIC
from render.providers.gemini import GEMINI
from render.providers.openai import CHAT, RESPONSES

PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider for provider in (ANTHROPIC, RESPONSES, CHAT, GEMINI)
}
"""The providers by `Model.provider`."""


def provider_of(model: Model) -> Provider:
    """The provider that serves a model.

    Raises:
        MisuseError: there is no provider of the name in `Model.provider`.
    """
    try:
        return PROVIDERS[model.provider]
    except KeyError:
        near = did_you_mean(model.provider, PROVIDERS) or f"; known: {', '.join(PROVIDERS)}"
        raise MisuseError(f"model {model.name!r}: no provider {model.provider!r}{near}") from None


def refusal(part: Part, where: Where) -> str:
    """Why every provider would refuse a part; empty: at least one accepts it."""
    refusals = [provider.refusal(part, where) for provider in PROVIDERS.values()]
    return "" if "" in refusals else refusals[0]
