"""Facts about models: the dated table that comes with the library (`models.toml`), and the user's own file over it.

Both are read on first use.  A file is in the table's own form (TOML), or litellm's list of prices (JSON).  The fields of
a row are applied after those of its provider's models, its `tokenizer`, its `cache` and its `image`.  A row in the user's
file with the name of a known model changes only the fields that it has.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import ArgumentError, MisuseError, checked_call, did_you_mean
from render import Model

VARIABLE: Final = "FOLDLINE_MODELS"
"""The environment variable with the path of the user's own file of models."""
_SIZED = re.compile(r"\[([1-9]\d{0,3})([km])\]$")
"""The suffix with which agents name a model with a window of another size, such as `[1m]`."""
# What may follow a model's name without making it another model: a date, or a platform's suffix. Not "-6",
# because claude-opus-5-6 is not Opus 5; and not any word, because GPT-5 mini has other prices than GPT-5.
_SUFFIX = re.compile(
    r"(-\d{8}|-\d{4}-\d{2}-\d{2})(\D.*)?|-(latest|thinking)(\W.*)?|-v\d.*|[^a-z0-9-].*"
)
Row: TypeAlias = Mapping[str, Any]
SHARED: Final = {"tokenizer": "tokenizers", "cache": "caches", "image": "images"}
"""Fields of a row that name a shared table of fields, and the sections with these tables."""
NEEDED: Final = ("tokens_window", "price_input", "price_output")
"""Fields that the row of a new model must have."""
_FIELDS: Final = frozenset(field.name for field in attrs.fields(Model)) - {"known"}
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*models[ \t]*\]\]", re.MULTILINE)


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
    if exact := _by_full_name().get(name.lower()):
        return exact
    for known in sorted(_by_name(), key=len, reverse=True):
        rest = bare.removeprefix(known)
        if bare.startswith(known) and (not rest or _SUFFIX.fullmatch(rest)):
            return _by_name()[known]
    return Model(name=name or "unknown")


def priced_model(name: str) -> Model | None:
    """The model with this name; for one that is not in the table, the known model of the same vendor whose name begins
    most alike, as a guess; None: no model of this vendor is known. The first word of a name tells the vendor."""
    model, bare = model_named(name), _bare(name)
    alike = (
        attrs.evolve(known, known=False)
        for length in range(len(bare), 0, -1)
        for other, known in _by_name().items()
        if other.startswith(bare[:length]) and _vendor(other) == _vendor(bare)
    )
    return model if model.known else next(alike, None)


def _vendor(name: str) -> str:
    return re.split("[^a-z]", name, maxsplit=1)[0]


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
def _table() -> "ModelTable":
    own = models_file()
    return merged(_shipped(), read_models(own, over=_shipped())) if own.is_file() else _shipped()


@cache
def _shipped() -> "ModelTable":
    return read_models(Path(__file__).with_name("models.toml"))


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


# Files of models


@attrs.frozen(kw_only=True)
class ModelTable:
    """Rows of models by name, and the tables of fields that they share."""

    providers: Mapping[str, Row] = attrs.field(factory=dict[str, Row])
    tokenizers: Mapping[str, Row] = attrs.field(factory=dict[str, Row])
    caches: Mapping[str, Row] = attrs.field(factory=dict[str, Row])
    images: Mapping[str, Row] = attrs.field(factory=dict[str, Row])
    models: Mapping[str, Row] = attrs.field(factory=dict[str, Row])


_SECTIONS: Final = tuple(field.name for field in attrs.fields(ModelTable))


def merged(table: ModelTable, own: ModelTable) -> ModelTable:
    """A table with the user's own rows laid over it."""
    sections = {name: {**getattr(table, name), **getattr(own, name)} for name in _SECTIONS}
    sections["models"] |= {
        name: {**table.models.get(name, {}), **row} for name, row in own.models.items()
    }
    return ModelTable(**sections)


def built(table: ModelTable) -> dict[str, Model]:
    """The models of a table by name.

    Raises:
        ArgumentError: a row is not a valid model.
    """
    return {name: model_of(row, table) for name, row in table.models.items()}


def model_of(row: Row, table: ModelTable) -> Model:
    """The model that a row describes.

    Raises:
        ArgumentError: the row is not a valid model; the message says why.
    """
    name = f"model {row.get('name')!r}"
    if missing := [field for field in NEEDED if field not in row]:
        raise ArgumentError(f"{name}: these fields are missing: {', '.join(missing)}")
    provider = row.get("provider", "anthropic")
    if provider not in table.providers:
        raise ArgumentError(f"{name}: no provider {provider!r}{_near(provider, table.providers)}")
    row = {**table.providers[provider], **row}
    fields: dict[str, Any] = {}
    for field, section in SHARED.items():
        tables: Mapping[str, Row] = getattr(table, section)
        if field in row and row[field] not in tables:
            raise ArgumentError(f"{name}: no {field} {row[field]!r}{_near(row[field], tables)}")
        fields |= tables[row[field]] if field in row else {}
    fields |= {field: value for field, value in row.items() if field not in ("cache", "image")}
    if wrong := [field for field in fields if field not in _FIELDS]:
        raise ArgumentError(f"{name}: a model has no {wrong[0]!r}{did_you_mean(wrong[0], _FIELDS)}")
    try:
        return msgspec.convert({**fields, "known": True}, Model)
    except msgspec.ValidationError as error:
        raise ArgumentError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from error


def read_models(path: Path, over: ModelTable | None = None) -> ModelTable:
    """The tables in a file; see `models_in`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MisuseError(f"file of models {path}: {error.strerror}") from error
    return models_in(data, path, over or ModelTable())


def models_in(data: bytes, path: Path, over: ModelTable) -> ModelTable:
    """The tables in a file; together with those of `over`, every row must be a valid model.

    Raises:
        MisuseError: it is not a valid file of models; the message has the path and the line.
    """
    try:
        text = data.decode()
        table = _parsed(text, over)
    except ValueError as error:  # from TOML, JSON or UTF-8
        raise MisuseError(f"file of models {path}: {error}") from error
    whole = merged(over, table)
    for name in table.models:
        try:
            model_of(whole.models[name], whole)
        except ArgumentError as error:
            line = f", line {found}" if (found := _line_of(name, str(error), text)) else ""
            raise MisuseError(f"file of models {path}{line}: {error}") from error
    return table


def _parsed(text: str, over: ModelTable) -> ModelTable:
    import tomllib

    if text.lstrip().startswith("{"):
        return ModelTable(models=rows_of_litellm(json.loads(text), over.models))
    values = tomllib.loads(text)
    values.pop("dated", None)
    rows: list[Any] = values.pop("models", [])
    if wrong := [name for name in values if name not in _SECTIONS]:
        raise ValueError(f"there is no table {wrong[0]!r}{did_you_mean(wrong[0], _SECTIONS)}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):  # pyright: ignore[reportUnnecessaryIsInstance] -- somebody's file
        raise ValueError("write each model as a table [[models]]")
    return ModelTable(models=_rows_by_name(rows), **values)


def _rows_by_name(rows: list[dict[str, Any]]) -> dict[str, Row]:
    by_name: dict[str, Row] = {}
    for number, row in enumerate(rows, 1):
        name = row.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"[[models]] number {number} has no name")
        if name in by_name:
            raise ValueError(f"model {name!r} occurs twice")
        by_name[name] = row
    return by_name


def _line_of(name: str, problem: str, text: str) -> int:
    """The line of a row's field that an error message names, or else of the row's beginning; 0: not found."""
    header = re.search(rf'^.*"(\w+/)?{re.escape(name)}".*$', text, re.MULTILINE)
    if header is None:
        return 0
    begin = max(
        (m.start() for m in _HEADER.finditer(text, 0, header.end())), default=header.start()
    )
    after = _HEADER.search(text, header.end())
    end = after.start() if after else len(text)
    fields = re.finditer(r"^[ \t]*([a-z_0-9]+)[ \t]*=", text[begin:end], re.MULTILINE)
    places = [field.start(1) for field in fields if re.search(rf"\b{field[1]}\b", problem)]
    return text.count("\n", 0, begin + places[-1] if places else header.start()) + 1


def _near(given: object, known: Mapping[str, Row]) -> str:
    return did_you_mean(given, known) or f"; there are {', '.join(known)}"


# litellm's list of prices and windows (`model_prices_and_context_window.json`).  Its prices are dollars per token.  Its
# largest input is the window for some models, and the prompt without the answer for others; so it is used only as the
# window of models that are not known otherwise.


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
        price = entry.get(field + suffix)
        return round(price * _MILLION, 6) if isinstance(price, int | float) else None

    paid = dollars(_INPUT) or 0.0
    prices: dict[str, float | list[float]] = {f"{prefix}input": paid}
    prices[f"{prefix}output"] = dollars(_OUTPUT) or 0.0
    if (read := dollars(_READ)) is not None:
        prices[f"{prefix}read"] = read
    writes = [dollars(_WRITE), dollars(_WRITE + later)] if (later := _LATER.get(provider)) else []
    known = [price for price in writes if price is not None]
    prices[f"{prefix}writes"] = known if known == writes else []  # empty: the provider's rule
    return prices
