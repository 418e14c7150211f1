"""The table of providers: one for each API, each in a folder of its own."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from blocks import MisuseError, Part, did_you_mean
from render.policy._context import Model, Provider, Where

_ROWS: Final = {
    "anthropic": ("render.providers.anthropic", "ANTHROPIC"),
    "openai.responses": ("render.providers.openai", "RESPONSES"),
    "openai.chat": ("render.providers.openai", "CHAT"),
    "gemini": ("render.providers.gemini", "GEMINI"),
}
"""By name: the module of a provider, and its constant there."""


class Providers(Mapping[str, Provider]):
    """The providers by `Model.provider`. Each is loaded when it is first used, because a program needs one or two."""

    def __init__(self) -> None:
        self.loaded: dict[str, Provider] = {}

    def __getitem__(self, name: str) -> Provider:
        if name not in self.loaded:
            module, constant = _ROWS[name]
            self.loaded[name] = getattr(import_module(module), constant)
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_ROWS)

    def __len__(self) -> int:
        return len(_ROWS)


PROVIDERS: Final = Providers()


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
