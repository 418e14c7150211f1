"""`foldline models`: show the table of models, or update it from a file."""

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from blocks import MisuseError
from timeline.cli._comparison import open_table
from timeline.cli._console import DONE, UsageError, answer, plural, print_json, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from render import Model

NAME = "models"
HELP = "list the models with known window and prices, or load models from a file"
EXAMPLES = """\
examples:
  foldline models
  foldline models gpt-5.6-sol 'claude-opus-4-5[1m]'
  foldline models --from mine.toml
  foldline models --from model_prices_and_context_window.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = EXAMPLES
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="show only these models, found the way a timeline finds its model",
    )
    add(
        "--from",
        dest="file",
        type=Path,
        metavar="FILE",
        help="load the models of this file: TOML like foldline's own table, or litellm's JSON",
    )


def run(options: argparse.Namespace) -> int:
    """Print a row for each model; or, with `--from`, what the file changed."""
    from timeline import known_models, model_named

    if options.file and options.names:
        raise UsageError("--from loads all models of the file: leave the names out")
    if options.file:
        return _take(options)
    models = [model_named(name) for name in options.names] or known_models()
    if options.json:
        import attrs

        for model in models:
            print_json({"name": model.name, "known": model.known, **attrs.asdict(model)})
    else:
        _tell(models)
    return DONE


def _take(options: argparse.Namespace) -> int:
    """Check the file and install it as the table of models; the old table is kept beside it."""
    from timeline._models import known_models, models_file, own_models, refresh_models
    from timeline.replay import atomic_write

    data = options.file.read_bytes()
    taken, place, before = own_models(data, options.file), models_file(), _before()
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_file():
        shutil.copyfile(place, place.with_name(f"{place.name}.before"))
    with atomic_write(place) as file:
        file.write(data)
    refresh_models()
    new = [name for name in taken if name not in before]
    known = [model for model in known_models() if model.name in before]
    changed = [model.name for model in known if before[model.name] != model]
    facts = {"file": str(place), "models": len(taken), "new": new, "changed": changed}
    said = f"{plural(len(taken), 'model')}, {len(new)} new, {len(changed)} changed"
    return answer(options, facts, f"{place}: {said}")


def _before() -> "dict[str, Model]":
    """The models known before; an unreadable table counts as none, since it is about to be replaced."""
    from timeline import known_models

    try:
        return {model.name: model for model in known_models()}
    except MisuseError:
        return {}


def _tell(models: "Sequence[Model]") -> None:
    from timeline._models import guess_about

    console = screen()
    for model in models:
        if guess := guess_about(model):
            console.print(guess)
            console.print(f"{model.name}: assuming {_assumed(model)}")
    table = open_table("model", "provider")
    table.columns[0].no_wrap = True
    for column in ("window", "answer", "input", "read", "written", "output"):
        table.add_column(column, justify="right", no_wrap=True)
    for model in models:
        table.add_row(*_row(model))
    console.print(table)
    console.print(
        "prices in dollars per million tokens; written: one for each lifetime of the cache"
    )


def _assumed(model: "Model") -> str:
    dollars = f"${model.price_input:.4g} and ${model.price_output:.4g}"
    return f"{model.tokens_window:,} tokens, and about {dollars} per million tokens in and out"


def _row(model: "Model") -> tuple[str, ...]:
    from render import PROVIDERS, provider_of

    if not model.known:
        return model.name, "unknown", "unknown", *["–"] * 5
    served = model.provider in PROVIDERS
    rates = provider_of(model).rates(model, 0) if served else None
    read = model.price_read if rates is None else rates.read
    writes = model.price_writes if rates is None else tuple(rates.writes.values())
    dollars = (model.price_input, read, writes, model.price_output)
    return (
        model.name,
        model.provider,
        f"{model.tokens_window:,}",
        f"{model.output_tokens_max:,}",
        *map(_price, dollars),
    )


def _price(price: "float | tuple[float, ...] | None") -> str:
    if price is None:
        return "–"
    prices = price if isinstance(price, tuple) else (price,)
    return " ".join(f"{each:.4g}" for each in prices)
