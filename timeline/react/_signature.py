"""A function's signature as a JSON schema, and as a check of what the model sends."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import attrs
import msgspec

from blocks import MisuseError
from render import Json

_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLAIN: Final = (str, int, float, bool, type(None))
"""Types of default values that a schema can show."""
_SECTION: Final = re.compile(r"^(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^[A-Z]\w*:\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^(\s*)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


@attrs.frozen(kw_only=True)
class Signature:
    """The parameters of a function, as a schema and as a check of its input."""

    description: str
    schema: Json
    _input: Any = attrs.field(alias="input")
    """A struct type with one field per parameter."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Signature":
        """The signature of a function.

        Raises:
            MisuseError: a parameter has a type without a JSON form, or cannot be passed by name.
        """
        name = str(getattr(function, "__name__", function))
        description, texts = _docstring(inspect.getdoc(function) or "")
        try:
            hints = get_type_hints(function, include_extras=True)
            parameters = inspect.signature(function).parameters.values()
            fields = [_field(parameter, hints, texts) for parameter in parameters]
            made = msgspec.defstruct("Input", fields, kw_only=True, forbid_unknown_fields=True)
            schema = _inlined(msgspec.json.schema(made))
        except (TypeError, NameError, ValueError) as error:
            raise MisuseError(f"tool {name}: {error}") from error
        return cls(description=description, schema=schema, input=made)

    def arguments(self, given: Json) -> Json:
        """Keyword arguments of the right types; numbers may be given as text.

        Raises:
            ValueError: the input is not valid; the message is meant for the model.
        """
        found = msgspec.convert(given, self._input, strict=False)
        values = ((name, getattr(found, name)) for name in found.__struct_fields__)
        return {name: value for name, value in values if value is not msgspec.UNSET}


def accepted(function: Callable[..., Any], given: Json) -> Json:
    """The keyword arguments for which a function has parameters."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return given
    names = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    return {name: value for name, value in given.items() if name in names}


def required(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters without defaults, in order."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _field(
    parameter: inspect.Parameter, hints: dict[str, Any], texts: dict[str, str]
) -> tuple[str, Any] | tuple[str, Any, Any]:
    name = parameter.name
    if parameter.kind not in _BY_NAME:
        raise TypeError(f"parameter {name} cannot be given by name")
    kind = _described(hints.get(name, Any), texts.get(name, ""))
    if parameter.default is parameter.empty:
        return name, kind
    if isinstance(parameter.default, _PLAIN):
        return name, kind, parameter.default
    return name, kind | msgspec.UnsetType, msgspec.UNSET


def _described(kind: Any, text: str) -> Any:
    """The type with its description: from `Annotated[str, "..."]`, or else from the docstring."""
    if get_origin(kind) is Annotated:
        base, *notes = get_args(kind)
        said = [note for note in notes if isinstance(note, str)]
        text = said[0] if said else text
        rest = [note for note in notes if not isinstance(note, str)]
        if any(isinstance(note, msgspec.Meta) and note.description for note in rest):
            text = ""
        for note in rest:
            base = Annotated[base, note]
        kind = base
    return Annotated[kind, msgspec.Meta(description=text)] if text else kind


def _inlined(schema: Json) -> Json:
    """The schema with its own object at the top; types that it refers to stay in `$defs`."""
    definitions: Json = schema["$defs"]
    top: Json = definitions.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title", None)
    return {**top, "$defs": definitions} if definitions else top


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
    return description, _arguments(arguments)


def _arguments(section: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    depth, name = None, ""
    for line in section.splitlines():
        found = _ARGUMENT.match(line)
        if found and (depth is None or len(found[1]) <= depth):
            depth, name = len(found[1]), found[2]
            texts[name] = found[3].strip()
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
