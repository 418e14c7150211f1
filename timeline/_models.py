"""Facts about models: the dated table that comes with the library (`models.toml`), and the user's own file over it.

Both are read on first use.  A file is in the table's own form (TOML), or litellm's list of prices (JSON).  The fields of
a row are applied after those of its provider's models, its `tokenizer`, its `cache` and its `image`.  A row in the user's
file with the name of a known model changes only the fields that it has.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from blocks import ArgumentError, MisuseError, checked_call, did_you_mean, in_words
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
_STATES: Final = frozenset(("exp", "experimental", "latest", "preview"))
"""Words in names that say nothing about what is sold."""
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


def list_file() -> Path:
    """The path of the user's copy of litellm's list, beside the user's own file, which goes before it."""
    return models_file().with_name("litellm-prices.json")


def own_files() -> list[Path]:
    """Those of the user's two files of models that there are."""
    return [file for file in (models_file(), list_file()) if file.is_file()]


@lru_cache(maxsize=256)
def model_named(name: str) -> Model:
    """The model with this name, dated alias or longest known prefix. For an unknown name a guess: the API, the counts, the
    window and the prices of the nearest known model of the same vendor, and of what requests may have only what every
    model takes; if the vendor is not known either, a window of 128,000 tokens and no price.

    Platforms decorate names: `us.anthropic.claude-opus-4-5-20251101-v1:0`,
    `anthropic/claude-haiku-4.5`. Agents add the window: `claude-opus-4-5[1m]` has 1,000,000 tokens.

    Raises:
        ArgumentError: the name is not a text.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise ArgumentError(f"model_named(): name must be a text, not {in_words(name)}")
    bare = _bare(name)
    if size := _SIZED.search(bare):
        tokens = int(size[1]) * (1_000_000 if size[2] == "m" else 1_000)
        sized = model_named(name[: -len(size[0])])
        return attrs.evolve(sized, tokens_window=tokens, input_tokens_max=0)
    if exact := _by_full_name().get(name.lower()):
        return exact
    for prefix in sorted(_by_name(), key=len, reverse=True):
        rest = bare.removeprefix(prefix)
        if bare.startswith(prefix) and (not rest or _SUFFIX.fullmatch(rest)):
            return _by_name()[prefix]
    if near := _nearest(bare):
        return attrs.evolve(
            near,
            name=name,
            aliases=(),
            known=False,
            prefill=False,
            system_messages=False,
            thinking_modes=(),
            thinking_bound=near.provider == "anthropic",
        )
    vendor, api = vendor_of(bare), _APIS_OF_HOSTS.get(name.lower().partition("/")[0])
    row = {"name": name or "unknown", "tokens_window": 128_000, "price_input": 0, "price_output": 0}
    fields = vendor.fields if vendor else {"provider": api, "tokenizer": "others"} if api else {}
    return attrs.evolve(model_of({**row, **fields}, _table()), known=False)


@lru_cache(maxsize=256)
def priced_model(name: str) -> Model | None:
    """The model with this name; for one that is not in the table, as a guess, the known model of the same vendor that it
    is most like; None: no price of this vendor is known."""
    model = model_named(name)
    near = None if model.known else _nearest(_bare(_SIZED.sub("", name)))
    return model if model.known else near and attrs.evolve(near, known=False)


def _nearest(bare: str) -> Model | None:
    """The known model of the same vendor with the most words of this name; of these, the one that begins most alike; and
    of these, the first in the table, where the newest stand first."""
    match = _VENDOR.search(bare)
    if not match:
        return None
    name, alike = _parts(bare[match.start() :]), _by_vendor()[_NAMED[match[1]]]

    def likeness(other: str) -> tuple[int, int, bool]:
        parts = _parts(other)
        words = {*filter(str.isalpha, name)} & {*parts} - _STATES
        same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(name, parts, strict=False))])
        is_other_version = any(len(part) == 1 and part.isdigit() for part in name[same : same + 1])
        return len(words), same, same == len(parts) and not is_other_version

    return alike.get(max(alike, key=likeness, default=""))


def _parts(name: str) -> list[str]:
    """The words and numbers of a name."""
    return re.findall("[a-z]+|[0-9]+", name)


class Vendor(msgspec.Struct, frozen=True):
    """Who makes models with certain names."""

    names: tuple[str, ...]
    """The first words of these names."""
    provider: str
    """The API in which it offers them, or in which others do."""
    tokenizer: str
    lists: str = ""
    """Its name in litellm's list; empty: it has no prices of its own."""
    traced: str = ""
    """Its name in OpenTelemetry's conventions for generative AI, if it is the only one that sells its models, or is named
    there; empty: a call is the API's."""

    @property
    def fields(self) -> dict[str, str]:
        """What a row of one of its models begins with."""
        return {"provider": self.provider, "tokenizer": self.tokenizer}


_CHAT: Final = "openai.chat"
VENDORS: Final = (
    Vendor(("gpt", "chatgpt", "codex", *(f"o{n}" for n in range(1, 10))), "openai.responses", "o200k", "openai", "openai"),
    Vendor(("claude",), "anthropic", "new", "anthropic", "anthropic"),
    Vendor(("gemini",), "gemini", "gemini", "gemini", "gcp.gemini"),
    Vendor(("deepseek",), _CHAT, "others", "deepseek", "deepseek"),
    Vendor(("grok",), _CHAT, "others", "xai", "x_ai"),
    Vendor(("qwen", "qwq", "qvq"), _CHAT, "others", "dashscope"),
    Vendor(
        ("mistral", "ministral", "mixtral", "magistral", "codestral", "devstral", "pixtral"),
        _CHAT, "others", "mistral", "mistral_ai",
    ),
    Vendor(("kimi", "moonshot"), _CHAT, "others", "moonshot"),
    Vendor(("glm", "chatglm"), _CHAT, "others", "zai"),
    Vendor(("minimax",), _CHAT, "others", "minimax"),
    # Their weights are free, and only others sell answers.
    Vendor(("gpt-oss",), _CHAT, "o200k"),
    Vendor(("gemma",), _CHAT, "gemini"),
    Vendor(("llama", "codellama"), _CHAT, "others"),
)  # fmt: skip
_APIS_OF_HOSTS: Final = {
    **dict.fromkeys(("azure", "openai"), "openai.responses"),
    **dict.fromkeys(
        (
            *("azure_ai", "cerebras", "cohere", "deepinfra", "fireworks_ai", "github_models", "groq", "hosted_vllm"),
            *("lm_studio", "nvidia_nim", "ollama", "openrouter", "perplexity", "sambanova", "together_ai", "vllm"),
        ),
        _CHAT,
    ),
}  # fmt: skip
"""What a name begins with that only says where a model is, such as a deployment of one's own; and the API there."""
_NAMED: Final = {name: vendor for vendor in VENDORS for name in vendor.names}
_FIRST: Final = f"({'|'.join(sorted(_NAMED, key=len, reverse=True))})(?![a-z])"
_VENDOR: Final = re.compile(rf"(?<![a-z]){_FIRST}")
_PLATFORM: Final = re.compile(rf"\A.*?(?:\.|(?=claude-))(?={_FIRST})")
"""What platforms write before a vendor's name, such as `us.anthropic.`."""


def vendor_of(name: str) -> Vendor | None:
    """The vendor of the model with this name, by the first word of it that a vendor uses; None: it is not known."""
    match = _VENDOR.search(name.lower())
    return _NAMED[match[1]] if match else None


def traced_provider(model: Model) -> str:
    """The name of a model's provider in OpenTelemetry's conventions. An API that only its maker offers decides; one that
    many offer leaves it to the model's name, and if that does not tell, is OpenAI's."""
    company = model.provider.partition(".")[0]
    by_api = next((vendor for vendor in VENDORS if vendor.lists == company), None)
    by_name = vendor_of(model.name) if model.provider == _CHAT else None
    return (by_name and by_name.traced) or (by_api.traced if by_api else company)


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
    """A notice that a model is only guessed, and where the guess is from; empty if it is in a table or described."""
    if model.known:
        return ""
    bare, near = _bare(model.name), priced_model(model.name)
    is_typed = {*filter(str.isalpha, _parts(bare))} <= {
        part for name in _by_name() for part in _parts(name)
    }
    hint = "" if is_typed else did_you_mean(bare, _by_name())
    what = "its window, its counts and its prices are guesses"
    if near and (near.price_input, near.price_output) == (model.price_input, model.price_output):
        what += f", those of {near.name}"
    elif not model.price_input + model.price_output:
        what = "its window and its counts are guesses, and no price is known"
    return f"model {model.name!r} is not in the table: {what}{hint}"


def own_models(data: bytes, path: Path) -> tuple[tuple[str, ...], Path]:
    """The names of the models in a user's file with this content, and the path where such a file belongs.

    Raises:
        MisuseError: it is not a valid file of models.
    """
    if data.lstrip().startswith(b"{"):
        return tuple(models_in(data, path, _shipped()).models), list_file()
    return tuple(models_in(data, path, _listed()).models), models_file()


def refresh_models() -> None:
    """Discard the cached models, because the user's file has changed."""
    for read in (
        known_models,
        _table,
        _listed,
        _by_name,
        _by_full_name,
        _by_vendor,
        model_named,
        priced_model,
    ):
        read.cache_clear()


@cache
def _table() -> "ModelTable":
    return _with_file(_listed(), models_file())


@cache
def _listed() -> "ModelTable":
    return _with_file(_shipped(), list_file())


def _with_file(table: "ModelTable", own: Path) -> "ModelTable":
    return merged(table, read_models(own, over=table)) if own.is_file() else table


@cache
def _shipped() -> "ModelTable":
    return read_models(Path(__file__).with_name("models.toml"))


def _bare(name: str) -> str:
    """The name in lower case, with hyphens in versions and without platform prefixes."""
    lower = _PLATFORM.sub("", name.lower().rpartition("/")[2], count=1)
    return lower.replace(".", "-")


@cache
def _by_name() -> Mapping[str, Model]:
    return {_bare(name): model for name, model in _by_full_name().items() if "/" not in name}


@cache
def _by_vendor() -> Mapping[Vendor | None, Mapping[str, Model]]:
    """The models of each known vendor by name; those that it sells go before those that others host."""
    models = defaultdict[Vendor | None, dict[str, Model]](dict)
    for name, model in sorted(_by_full_name().items(), key=lambda item: "/" in item[0]):
        if vendor := vendor_of(name.rpartition("/")[2]):
            models[vendor].setdefault(_bare(name), model)
    return models


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
            line = f", line {number}" if (number := _line_of(name, str(error), text)) else ""
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


def _near(value: object, rows: Mapping[str, Row]) -> str:
    return did_you_mean(value, rows) or f"; there are {', '.join(rows)}"


# litellm's list of prices and windows (`model_prices_and_context_window.json`).  Its prices are dollars per token.  Its
# largest input is the window for some models, and the prompt without the answer for others; so it is used only as the
# window of models that are not known otherwise.


LIST_URL: Final = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)
_SELLERS: Final = {vendor.lists: vendor for vendor in VENDORS if vendor.lists}
"""By their names in the list: the vendors that sell their own models."""
_HOSTS: Final = ("groq", "together_ai", "openrouter", "dashscope", "mistral")
"""Those in the list that also sell models of other vendors, at prices of their own."""
_MILLION: Final = 1_000_000
_LONG: Final = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
_LIMITS: Final = ("tokens_window", "output_tokens_max")
_INPUT, _OUTPUT = "input_cost_per_token", "output_cost_per_token"
_READ, _WRITE = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_LATER: Final = {"anthropic": "_above_1hr", "openai.responses": "_above_12hr"}
"""The suffix of its price for cache writes with the longer lifetime. Providers that are not here write for nothing."""


def rows_of_litellm(
    data: Mapping[str, Any], table: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """A row for each language model of a known vendor that has a window and a price. A model that is already in the
    table gets only its prices; other names of such a model get no row. What others charge for a vendor's model is under
    their name for it, such as `groq/qwen/qwen3.8-27b`.

    Raises:
        ValueError: there is no such model.
    """
    candidates: dict[str, dict[str, Any]] = {}
    for key, entry in data.items():
        for row in _rows(key, entry):
            candidates.setdefault(row["name"], row)
    aliases = {alias for row in table.values() for alias in row.get("aliases", ())}
    rows: dict[str, dict[str, Any]] = {}
    for name, row in candidates.items():
        undated = _DATE.sub("", name)
        if name in aliases or (name != undated and (undated in candidates or undated in table)):
            continue
        own = (*_LIMITS, "provider", "tokenizer") if name in table else ()
        rows[name] = {field: value for field, value in row.items() if field not in own}
    if not rows:
        raise ValueError(
            f"it has no language model of {', '.join(_SELLERS)} with max_input_tokens, {_INPUT} and {_OUTPUT}"
        )
    return rows


def _rows(key: str, value: object) -> Iterator[dict[str, Any]]:
    """The row of an entry, if it is a language model of a known vendor, and sold."""
    entry = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if entry.get("mode") not in ("chat", "responses"):
        return
    entry = _without_tiers(entry)
    listed, name = str(entry.get("litellm_provider")), key.rpartition("/")[2]
    maker, seller = vendor_of(name), _SELLERS.get(listed)
    if maker and maker is not seller and listed in _HOSTS:
        vendor, name = maker, key
    elif seller and maker in (seller, None):
        vendor = seller
    else:
        return
    needed = ("max_input_tokens", _INPUT, _OUTPUT)
    if not all(isinstance(entry.get(field), int | float) for field in needed):
        return
    if not entry[_INPUT] + entry[_OUTPUT]:
        return
    row = {
        "name": name,
        **vendor.fields,
        "tokens_window": int(entry["max_input_tokens"]),
        **_prices(entry, vendor.provider, "", "price_"),
    }
    if isinstance(answer := entry.get("max_output_tokens"), int | float):
        row["output_tokens_max"] = int(answer)
    if vendor.provider == "openai.responses" and _WRITE in entry:
        row["cache"] = "openai-marks"
    if least := entry.get("prompt_cache_min_tokens"):
        row["cache_tokens_min"] = int(least)
    if long := next(filter(None, map(_LONG.fullmatch, entry)), None):
        row["long_prompt_tokens"] = int(long[1]) * 1_000
        row |= _prices(entry, vendor.provider, f"_above_{long[1]}k_tokens", "long_price_")
    yield row


def _without_tiers(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry whose prices by the size of the prompt are a list, as the others: of the list, the first two sizes."""
    try:
        tiers = msgspec.convert(entry.get("tiered_pricing", []), list[dict[str, Any]])
        sizes = msgspec.convert([tier["range"] for tier in tiers], list[tuple[float, float]])
    except (KeyError, msgspec.ValidationError):
        return entry
    flat = dict(entry)
    for (begin, _), tier in zip(sizes[:2], tiers, strict=False):
        above = f"_above_{begin // 1_000:.0f}k_tokens" if begin else ""
        flat |= {field + above: price for field, price in tier.items()}
    return flat


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
    elif provider.startswith("openai"):  # the list leaves out what has no discount
        prices[f"{prefix}read"] = paid
    writes = [dollars(_WRITE), dollars(_WRITE + later)] if (later := _LATER.get(provider)) else []
    rates = [price for price in writes if price is not None]
    prices[f"{prefix}writes"] = rates if rates == writes else []  # empty: the provider's rule
    return prices
