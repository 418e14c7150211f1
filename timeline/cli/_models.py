"""`foldline models`: show the table of models, or update it from a file."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs

from blocks import MisuseError
from render import PROVIDERS, Model, provider_of
from timeline import known_models, model_named
from timeline._models import guess_about, models_file, own_models, refresh_models
from timeline.cli._console import answer, number_columns, print_json, screen, wide_table
from timeline.cli._options import UsageError, Values, argument, command, option
from timeline.cli._terminal import DONE, plural
from timeline.replay import atomic_write


@command(
    "models",
    argument(
        "names",
        nargs=-1,
        metavar="NAME",
        help="show only these models, found the way a timeline finds its model",
    ),
    option(
        "--from",
        "file",
        type=Path,
        metavar="FILE",
        help="load the models of this file: TOML like foldline's own table, or litellm's JSON",
    ),
    epilog="""\
examples:
  foldline models
  foldline models gpt-5.6-sol 'claude-opus-4-5[1m]'
  foldline models --from mine.toml
  foldline models --from model_prices_and_context_window.json
""",
)
def models(options: Values) -> int:
    """Print a row for each model; or, with `--from`, what the file changed."""
    if options.file and options.names:
        raise UsageError("--from loads all models of the file: leave the names out")
    if options.file:
        return _load(options)
    models = [model_named(name) for name in options.names] or known_models()
    if options.json:
        for model in models:
            print_json({"name": model.name, "known": model.known, **attrs.asdict(model)})
    else:
        _tell(models)
    return DONE


def _load(options: Values) -> int:
    """Check the file and install it as the table of models; the old table is kept beside it."""
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


def _before() -> dict[str, Model]:
    """The models known before; an unreadable table counts as none, since it is about to be replaced."""
    try:
        return {model.name: model for model in known_models()}
    except MisuseError:
        return {}


def _tell(models: Sequence[Model]) -> None:
    console = screen()
    for model in models:
        if guess := guess_about(model):
            console.print(guess)
            console.print(f"{model.name}: assuming {_assumed(model)}")
    table = wide_table("model", "provider")
    table.columns[0].no_wrap = True
    number_columns(table, ("window", "answer", "input", "read", "written", "output"))
    for model in models:
        table.add_row(*_row(model))
    console.print(table)
    console.print(
        "prices in dollars per million tokens; written: one for each lifetime of the cache"
    )


def _assumed(model: Model) -> str:
    dollars = f"${model.price_input:.4g} and ${model.price_output:.4g}"
    return f"{model.tokens_window:,} tokens, and about {dollars} per million tokens in and out"


def _row(model: Model) -> tuple[str, ...]:
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


def _price(price: float | tuple[float, ...] | None) -> str:
    if price is None:
        return "–"
    prices = price if isinstance(price, tuple) else (price,)
    return " ".join(f"{each:.4g}" for each in prices)
