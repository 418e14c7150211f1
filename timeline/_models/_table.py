"""The dated table of models (`models.toml`), extended by the user's own file; both are read on first use."""

import os
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

from blocks import checked_call, did_you_mean
from render import Model
from timeline._models._files import ModelTable, built, merged, models_in, read_models

VARIABLE: Final = "FOLDLINE_MODELS"
"""The environment variable with the path of the user's own file of models."""

_SIZED = re.compile(r"\[([1-9]\d{0,3})([km])\]$")
"""The suffix with which agents name a model with a window of another size, such as `[1m]`."""

# What may follow a model's name without making it another model: a date, or a platform's suffix. Not "-6",
# because claude-opus-5-6 is not Opus 5; and not any word, because GPT-5 mini has other prices than GPT-5.
_SUFFIX = re.compile(
    r"(-\d{8}|-\d{4}-\d{2}-\d{2})(\D.*)?|-(latest|thinking)(\W.*)?|-v\d.*|[^a-z0-9-].*"
)


@cache
def known_models() -> tuple[Model, ...]:
    """Every model of the table, and of the user's own file (`foldline models --from FILE`).

    Raises:
        MisuseError: the file is not a valid file of models; the message says where and why.
    """
    return tuple(built(_table()).values())


def models_file() -> Path:
    """The path of the user's own file of models: the value of `FOLDLINE_MODELS`, or `foldline/models.toml` in the
    user's configuration folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "foldline" / "models.toml"


@lru_cache(maxsize=256)
def model_named(name: str) -> Model:
    """The model with this name, dated alias or longest known prefix. For an unknown name: safe guesses, and a window
    of 128,000 tokens.

    Platforms decorate names: `us.anthropic.claude-opus-4-5-20251101-v1:0`,
    `anthropic/claude-haiku-4.5`. Agents add the window: `claude-opus-4-5[1m]` has 1,000,000 tokens.
    """
    bare = _bare(name)
    if size := _SIZED.search(bare):
        tokens = int(size[1]) * (1_000_000 if size[2] == "m" else 1_000)
        sized = model_named(name[: -len(size[0])])
        return attrs.evolve(sized, tokens_window=tokens, input_tokens_max=0)
    if found := _by_full_name().get(name.lower()):
        return found
    for known in sorted(_by_name(), key=len, reverse=True):
        rest = bare.removeprefix(known)
        if bare.startswith(known) and (not rest or _SUFFIX.fullmatch(rest)):
            return _by_name()[known]
    return Model(name=name or "unknown")


@checked_call
def describe_model(name: str, *, provider: str, **fields: Any) -> Model:
    """A model that is in no table, with the defaults of its provider's models and the given fields.

    For example, for a server of your own: `describe_model("qwen3-32b", provider="openai.chat", tokens_window=32_768,
    price_input=0, price_output=0)`. The model counts as known, so its window and prices are required.

    Raises:
        ArgumentError: there is no such provider or field, a value is not valid, or the window or a price is missing.
    """
    row = {"name": name, "provider": provider, **fields}
    return built(attrs.evolve(_table(), models={name: row}))[name]


def guess_about(model: Model) -> str:
    """A notice that a model is only guessed; empty if it is in a table or described."""
    if model.known:
        return ""
    near = did_you_mean(_bare(model.name), _by_name())
    return f"model {model.name!r} is not in the table: its window, its counts and its prices are guesses{near}"


def own_models(data: bytes, path: Path) -> tuple[str, ...]:
    """The names of the models in a user's file with this content.

    Raises:
        MisuseError: it is not a valid file of models.
    """
    return tuple(models_in(data, path, _shipped()).models)


def refresh_models() -> None:
    """Discard the cached models, because the user's file has changed."""
    for read in (known_models, _table, _by_name, _by_full_name, model_named):
        read.cache_clear()


@cache
def _table() -> ModelTable:
    own = models_file()
    return merged(_shipped(), read_models(own, over=_shipped())) if own.is_file() else _shipped()


@cache
def _shipped() -> ModelTable:
    return read_models(Path(__file__).parent.with_name("models.toml"))


def _bare(name: str) -> str:
    """The name in lower case, with hyphens in versions and without platform prefixes."""
    lower = name.lower().rpartition("/")[2]
    return re.sub(r"(?<=\d)\.(?=\d)", "-", lower[max(lower.find("claude-"), 0) :])


@cache
def _by_name() -> Mapping[str, Model]:
    names = _by_full_name()
    return {_bare(name): model for name, model in names.items() if "/" not in name}


@cache
def _by_full_name() -> Mapping[str, Model]:
    models = known_models()
    return {name.lower(): model for model in models for name in (model.name, *model.aliases)}
