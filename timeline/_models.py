"""The dated table of models (`models.toml`), read when first needed."""

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import attrs

from render import Model

_SIZED = re.compile(r"\[([1-9]\d{0,3})([km])\]$")
"""How agents name a model that is to be used with a window of another size: `[1m]`."""

# What may follow a model's name without making it another model: a date, a platform's suffix, a
# word. Not "-6": claude-opus-5-6 is not Opus 5, and what holds for one need not hold for the other.
_SUFFIX = re.compile(r"-\d{8}(\D.*)?|-[a-z].*|[^a-z0-9-].*")


@cache
def known_models() -> tuple[Model, ...]:
    """Every model of the table."""
    import tomllib

    text = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    generations: dict[str, dict[str, Any]] = table["tokenizers"]
    return tuple(
        Model(known=True, **generations[row["tokenizer"]], **row) for row in table["models"]
    )


@lru_cache(maxsize=256)
def model_named(name: str) -> Model:
    """The model of this name, dated alias or longest known prefix; otherwise safe guesses, and a window
    of 128,000 tokens.

    Platforms decorate names: `us.anthropic.claude-opus-4-5-20251101-v1:0`,
    `anthropic/claude-haiku-4.5`. Agents add the window: `claude-opus-4-5[1m]` has 1,000,000 tokens.
    """
    bare = _bare(name)
    if size := _SIZED.search(bare):
        tokens = int(size[1]) * (1_000_000 if size[2] == "m" else 1_000)
        return attrs.evolve(model_named(name[: -len(size[0])]), tokens_window=tokens)
    for known in sorted(_by_name(), key=len, reverse=True):
        rest = bare.removeprefix(known)
        if bare.startswith(known) and (not rest or _SUFFIX.fullmatch(rest)):
            return _by_name()[known]
    return Model(name=name or "unknown")


def _bare(name: str) -> str:
    """From `claude` on, lower case, versions written with hyphens."""
    lower = name.lower()
    return re.sub(r"(?<=\d)\.(?=\d)", "-", lower[max(lower.find("claude-"), 0) :])


@cache
def _by_name() -> dict[str, Model]:
    return {name: model for model in known_models() for name in (model.name, *model.aliases)}
