"""Files of models: the table's own form (TOML), and litellm's list of prices (JSON).

The fields of a row are applied after those of its provider's models, its `tokenizer`, its `cache` and its `image`. A
row in the user's file with the name of a known model changes only the fields that it has.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from blocks import ArgumentError, MisuseError, did_you_mean
from render import Model
from timeline._models._litellm import rows_of_litellm

Row: TypeAlias = Mapping[str, Any]

SHARED: Final = {"tokenizer": "tokenizers", "cache": "caches", "image": "images"}
"""Fields of a row that name a shared table of fields, and the sections with these tables."""
NEEDED: Final = ("tokens_window", "price_input", "price_output")
"""Fields that the row of a new model must have."""
_FIELDS: Final = frozenset(field.name for field in attrs.fields(Model)) - {"known"}
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*models[ \t]*\]\]", re.MULTILINE)


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
        raise ArgumentError(f"{name}: say its {', '.join(missing)}")
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
        raise ValueError("models are written as [[models]], one after the other")
    return ModelTable(models=_by_name(rows), **values)


def _by_name(rows: list[dict[str, Any]]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for number, row in enumerate(rows, 1):
        name = row.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"[[models]] number {number} has no name")
        if name in found:
            raise ValueError(f"model {name!r} is there twice")
        found[name] = row
    return found


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
