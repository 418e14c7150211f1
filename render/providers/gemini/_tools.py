"""Tool definitions in the shape of the Gemini API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from render.providers._definitions import FREE_SCHEMA, definition_of
from render.providers.gemini._names import function_name
from render.view._provider_blocks import Json

DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_SCHEMAS: Final = ("parametersJsonSchema", "parameters_json_schema", "parameters")


def declared(tool: Json) -> Json:
    """A definition as a function declaration; one in the provider's own shape is returned unchanged.

    The schema is sent as JSON schema, because the other field accepts only a dialect of OpenAPI.
    """
    found = definition_of(tool)
    is_own = "type" not in tool and any(name in tool for name in _SCHEMAS)
    if found.other or is_own:
        return tool
    said = {"description": found.description} if found.description else {}
    schema = FREE_SCHEMA if found.free else found.schema
    known = {"parametersJsonSchema": schema} if schema else {}
    return {"name": function_name(found.name), **said, **known}


def grouped(tools: Sequence[Json]) -> list[Json]:
    """The function declarations in one tool, then the tools that the provider runs itself."""
    functions = [tool for tool in tools if "name" in tool]
    others = [tool for tool in tools if "name" not in tool]
    return [*([{DECLARATIONS[0]: functions}] if functions else []), *others]


def each_of(tools: object) -> Iterator[Json]:
    """The function declarations in the tools of a request, and the other tools."""
    for tool in cast("list[Any]", tools) if isinstance(tools, list | tuple) else ():
        known = cast("Json", tool) if isinstance(tool, Mapping) else {}
        functions = next((known[name] for name in DECLARATIONS if name in known), None)
        if isinstance(functions, list):
            yield from cast("list[Json]", functions)
        else:
            yield known
