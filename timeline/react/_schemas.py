"""A function's parameters: the JSON schema that the model is shown, and the conversion of what the model sends.

Types of pydantic (models, pydantic's dataclasses and constrained types, and whatever holds a `Field`) are read by
pydantic, all others by msgspec: dataclasses, TypedDicts, NamedTuples, attrs classes, structs, enums, literals, unions,
and `Annotated[..., msgspec.Meta(...)]`. pydantic is imported only for its own types.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, get_type_hints

import attrs
import msgspec

from blocks import MisuseError
from render import Json

Function: TypeAlias = Callable[..., Any]
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLAIN: Final = (str, int, float, bool, type(None))
"""Types of default values that a schema can show."""
_SECTION: Final = re.compile(r"^(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^[A-Z]\w*:\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^(\s*)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_PYDANTIC: Final = ("pydantic", "pydantic_core", "annotated_types")
"""Packages whose constraints in an `Annotated` msgspec would ignore."""
_OWN: Final = ("__get_pydantic_core_schema__", "__pydantic_core_schema__")
"""Attributes of the types that pydantic alone can read."""


@attrs.frozen(kw_only=True)
class Parameter:
    """One parameter of a function."""

    name: str
    type: Any
    text: str = ""
    """Its description."""
    default: Any = inspect.Parameter.empty

    @property
    def is_required(self) -> bool:
        """Whether the model must give it."""
        return self.default is inspect.Parameter.empty

    def shown(self, schema: Json) -> Json:
        """Its schema, with what its type does not say: the description and the default."""
        text = {"description": self.text} if self.text and "description" not in schema else {}
        is_plain = isinstance(self.default, _PLAIN)
        return {**schema, **text, **({"default": self.default} if is_plain else {})}


@attrs.frozen(kw_only=True)
class Signature:
    """The parameters of a function, as a schema and as a conversion of its input."""

    description: str
    schema: Json
    context: str = ""
    """The parameter that receives the run's context and is not shown to the model; empty: there is none."""
    _readers: tuple[Callable[[Json], Json], ...] = attrs.field(alias="readers")
    """Each converts the arguments of its own parameters."""

    @classmethod
    def of(cls, function: Function, context: type | None = None) -> "Signature":
        """The signature of a function; the parameter that is annotated with `context` is not shown to the model.

        Raises:
            MisuseError: a parameter has a type without a JSON form or a default of another type, or it cannot be
                passed by name.
        """
        name = str(getattr(function, "__name__", function))
        description, texts = _docstring(inspect.getdoc(function) or "")
        try:
            hints = get_type_hints(function, include_extras=True)
            parameters = inspect.signature(function).parameters.values()
            hidden = [
                p.name for p in parameters if context is not None and hints.get(p.name) is context
            ]
            visible = [_parameter(p, hints, texts) for p in parameters if p.name not in hidden]
            return cls(description=description, context="".join(hidden[:1]), **_read(visible))
        except ModuleNotFoundError as error:
            raise MisuseError(
                f"tool {name}: a parameter uses pydantic's types, and pydantic is not installed: "
                "pip install pydantic"
            ) from error
        # pydantic's complaint about a type is a RuntimeError
        except (TypeError, NameError, ValueError, RuntimeError) as error:
            raise MisuseError(f"tool {name}: {error}") from error

    def arguments(self, raw: Json) -> Json:
        """Keyword arguments of the right types; numbers may be given as text.

        Raises:
            ValueError: the input is not valid; the message is meant for the model.
        """
        faults: list[str] = []
        arguments: Json = {}
        for read in self._readers:
            try:
                arguments |= read(raw)
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("; ".join(faults))
        return arguments


def _parameter(
    parameter: inspect.Parameter, hints: Mapping[str, Any], texts: Mapping[str, str]
) -> Parameter:
    name, default = parameter.name, parameter.default
    if parameter.kind not in _BY_NAME:
        raise TypeError(f"parameter {name} cannot be given by name")
    kind, text = _described(hints.get(name, Any), texts.get(name, ""))
    if type(default).__module__ == "pydantic.fields":  # x: int = Field(1, ge=0)
        kind = Annotated[kind, default]
        default = parameter.empty if default.is_required() else default.get_default()
    elif default is None and kind is not Any:
        kind = kind | None
    return Parameter(name=name, type=kind, text=text, default=default)


def _described(kind: Any, text: str) -> tuple[Any, str]:
    """The type without its description, and the description: from `Annotated[str, "..."]`, or else the docstring's."""
    if get_origin(kind) is not Annotated:
        return kind, text
    base, *notes = get_args(kind)
    for note in notes:
        if not isinstance(note, str):
            base = Annotated[base, note]
    return base, next((note for note in notes if isinstance(note, str)), text)


def _read(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The schema of these parameters, and the readers of their arguments."""
    foreign = [each for each in parameters if is_pydantics(each.type)]
    own = [each for each in parameters if each not in foreign]
    shapes, definitions, read = _by_msgspec(own, frozenset(each.name for each in foreign))
    readers = [read]
    if foreign:
        more, others, read = _by_pydantic(foreign)
        same = [name for name in others if definitions.get(name, others[name]) != others[name]]
        if same:
            raise TypeError(f"two different types have the name {', '.join(same)}")
        shapes, definitions = {**shapes, **more}, {**definitions, **others}
        readers.append(read)
    schema = {
        "type": "object",
        "properties": {each.name: each.shown(shapes[each.name]) for each in parameters},
        "required": [each.name for each in parameters if each.is_required],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }
    return {"schema": schema, "readers": tuple(readers)}


Reader: TypeAlias = tuple[Mapping[str, Json], Json, Callable[[Json], Json]]
"""The schema of each parameter, the definitions that they refer to, and a function that converts their arguments."""


# By msgspec.


def _by_msgspec(parameters: Sequence[Parameter], others: frozenset[str]) -> Reader:
    """The parameters as fields of a struct. `others` are names that are read elsewhere."""
    fields = [_field(each) for each in parameters]
    struct = msgspec.defstruct("Input", fields, kw_only=True, forbid_unknown_fields=True)
    for each in parameters:
        if isinstance(each.default, _PLAIN):
            try:
                msgspec.convert(each.default, each.type, dec_hook=_special)
            except msgspec.ValidationError as error:
                raise TypeError(f"the default of parameter {each.name}: {error}") from None
    kinds = [each.type for each in parameters]
    shapes, definitions = msgspec.json.schema_components(
        kinds, schema_hook=_shape, ref_template="#/$defs/{name}"
    )

    def read(raw: Json) -> Json:
        mine = {name: value for name, value in raw.items() if name not in others}
        checked = _converted(mine, struct)
        values = ((name, getattr(checked, name)) for name in checked.__struct_fields__)
        return {name: value for name, value in values if value is not msgspec.UNSET}

    names = [each.name for each in parameters]
    return dict(zip(names, shapes, strict=True)), definitions, read


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.is_required:
        return parameter.name, parameter.type
    if isinstance(parameter.default, _PLAIN):
        return parameter.name, parameter.type, parameter.default
    return parameter.name, parameter.type | msgspec.UnsetType, msgspec.UNSET


def _converted(value: object, kind: Any) -> Any:
    """The value as this type. Only what does not fit as it is may be converted, so that "7" stays a text where texts are
    allowed."""
    try:
        return msgspec.convert(value, kind, dec_hook=_special)
    except msgspec.ValidationError:
        return msgspec.convert(value, kind, strict=False, dec_hook=_special)


def _shape(kind: type) -> Json:
    """The schema of a type that msgspec does not know."""
    if kind is Path:
        return {"type": "string"}
    raise TypeError(
        f"type {getattr(kind, '__name__', kind)!r} has no JSON form; take a dataclass, a TypedDict, a struct, an attrs"
        " class or a pydantic model"
    )


def _special(kind: type, value: Any) -> Any:
    return kind(value)


# By pydantic.


def is_pydantics(kind: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a type is pydantic's, or has something of pydantic's in it."""
    if id(kind) in seen or isinstance(kind, str):
        return False
    if any(name in getattr(kind, "__dict__", ()) or hasattr(kind, name) for name in _OWN):
        return True
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        if any(type(note).__module__.partition(".")[0] in _PYDANTIC for note in notes):
            return True
    inner = (*get_args(kind), *_field_types(kind))
    return any(is_pydantics(each, seen | {id(kind)}) for each in inner)


def _field_types(kind: Any) -> Iterable[Any]:
    """The types of the fields of a class that has typed fields."""
    is_shaped = is_dataclass(kind) or any(
        hasattr(kind, name) for name in ("__total__", "_fields", "__attrs_attrs__")
    )
    return get_type_hints(kind, include_extras=True).values() if is_shaped else ()


def _by_pydantic(parameters: Sequence[Parameter]) -> Reader:
    from pydantic import TypeAdapter, ValidationError

    adapters: dict[str, Any] = {each.name: TypeAdapter(each.type) for each in parameters}
    schemas, definitions = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()],
        ref_template="#/$defs/{model}",
    )
    for each in parameters:
        if isinstance(each.default, _PLAIN):
            adapters[each.name].validate_python(each.default)

    def read(raw: Json) -> Json:
        arguments: Json = {}
        faults: list[str] = []
        for each in parameters:
            try:
                if each.name in raw:
                    # as JSON: a model may be strict, and take a date from a text in JSON only
                    content = msgspec.json.encode(raw[each.name])
                    arguments[each.name] = adapters[each.name].validate_json(content)
                elif each.is_required:
                    faults.append(f"Object missing required field `{each.name}`")
                elif isinstance(each.default, _PLAIN):
                    arguments[each.name] = each.default
            except ValidationError as error:
                for fault in error.errors(include_url=False):
                    path = "".join(f".{key}" for key in (each.name, *fault["loc"]))
                    faults.append(f"{fault['msg']} - at `${path}`")
        if faults:
            raise ValueError("; ".join(faults))
        return arguments

    shapes = {name: schema for (name, _), schema in schemas.items()}
    return shapes, definitions.get("$defs", {}), read


# What an application's own functions take.


def accepted(function: Function, arguments: Json) -> Json:
    """The keyword arguments for which a function has parameters."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    names = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    return {name: value for name, value in arguments.items() if name in names}


def required(function: Function) -> list[str]:
    """The names of the parameters without defaults, in order."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


# Docstrings.


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and the text of its `Args:` section for each parameter."""
    section = _SECTION.search(text)
    if section is None:
        return text.strip(), {}
    before, after = text[: section.start()], text[section.end() :]
    heading = _HEADING.search(after)
    arguments = after[: heading.start()] if heading else after
    rest = after[heading.start() :] if heading else ""
    description = "\n\n".join(part.strip() for part in (before, rest) if part.strip())
    texts: dict[str, str] = {}
    depth, name = None, ""
    for line in arguments.splitlines():
        match = _ARGUMENT.match(line)
        if match and (depth is None or len(match[1]) <= depth):
            depth, name = len(match[1]), match[2]
            texts[name] = match[3].strip()
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return description, texts
