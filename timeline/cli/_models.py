"""`foldline models`: show the table of models, or update it from a file."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from blocks import FoldlineError, MisuseError
from render import PROVIDERS, Model, provider_of
from timeline import model_named
from timeline._models import LIST_URL, guess_about, known_models, own_models, refresh_models
from timeline.billing import plural
from timeline.cli._console import answer, number_columns, print_json, screen, wide_table
from timeline.cli._options import UsageError, Values, argument, command, option
from timeline.cli._terminal import DONE
from timeline.replay import atomic_write

WIDE: Final = 100
"""Columns of a screen on which there is room for the provider, too."""


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
    option(
        "--refresh",
        is_flag=True,
        help=f"download litellm's list of prices and load it; this goes to the network: {LIST_URL}",
    ),
    epilog="""\
examples:
  foldline models
  foldline models gpt-5.6-sol 'claude-opus-4-5[1m]'
  foldline models --from mine.toml
  foldline models --from model_prices_and_context_window.json
  foldline models --refresh
""",
)
def models(options: Values) -> int:
    """Print a row for each model; or, with `--from` or `--refresh`, what the file changed."""
    if options.file and options.refresh:
        raise UsageError("--from and --refresh both load a list: give one of them")
    if options.names and (options.file or options.refresh):
        raise UsageError("--from and --refresh load all models of the list: leave the names out")
    if options.file:
        return _load(options, options.file.read_bytes(), options.file)
    if options.refresh:
        return _load(options, _downloaded(LIST_URL), Path(LIST_URL.rpartition("/")[2]))
    models = [model_named(name) for name in options.names] or known_models()
    if options.json:
        for model in models:
            print_json({"name": model.name, "known": model.known, **attrs.asdict(model)})
    else:
        _tell(models)
    return DONE


def _downloaded(url: str) -> bytes:
    """The content at a URL.

    Raises:
        FoldlineError: it cannot be fetched.
    """
    from http.client import HTTPException  # here, because these take long to import
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=30) as answer:  # noqa: S310 -- our own URL, or a test's
            return bytes(answer.read())
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise FoldlineError(
            f"{url} cannot be downloaded ({why}); repeat the command with a network, or download the list elsewhere "
            "and load it: foldline models --from FILE"
        ) from error


def _load(options: Values, data: bytes, file: Path) -> int:
    """Check the content of a file and install it, as the list of prices or as the user's own models; the file that was
    there is kept beside it."""
    (taken, place), before = own_models(data, file), _before()
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_file():
        shutil.copyfile(place, place.with_name(f"{place.name}.before"))
    with atomic_write(place) as copy:
        copy.write(data)
    refresh_models()
    new = [name for name in taken if name not in before]
    models = [model for model in known_models() if model.name in before]
    changed = [model.name for model in models if before[model.name] != model]
    facts = {"file": str(place), "models": len(taken), "new": new, "changed": changed}
    summary = f"{plural(len(taken), 'model')}, {len(new)} new, {len(changed)} changed"
    return answer(options, facts, f"{place}: {summary}")


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
    is_wide = console.width >= WIDE
    table = wide_table("model", *(["provider"] if is_wide else []))
    table.columns[0].max_width = 24  # a host's longer names are wrapped
    number_columns(table, ("window", "answer", "input", "read", "written", "output"))
    for model in models:
        name, provider, *numbers = _row(model)
        table.add_row(name, *([provider] if is_wide else []), *numbers)
    console.print(table)
    console.print(
        "prices in dollars per million tokens; written: one for each lifetime of the cache; ~: a guess"
    )


def _row(model: Model) -> tuple[str, ...]:
    read, writes = model.price_read, model.price_writes
    if model.provider in PROVIDERS:
        rates = provider_of(model).rates(model, 0)
        read = rates.read
        writes = tuple(rates.writes[time] for time in model.cache_ttls if time in rates.writes)
    dollars = (model.price_input, read, writes, model.price_output)
    is_priced = model.known or model.price_input + model.price_output
    values = (
        f"{model.tokens_window:,}",
        f"{model.output_tokens_max:,}",
        *(_price(price if is_priced else None) for price in dollars),
    )
    guess = "" if model.known else "~"
    return (
        model.name,
        model.provider,
        *(f"{guess}{each}" if each != "–" else each for each in values),
    )


def _price(price: float | tuple[float, ...] | None) -> str:
    if price is None:
        return "–"
    prices = price if isinstance(price, tuple) else (price,)
    return " ".join(f"{each:.4g}" for each in prices)
