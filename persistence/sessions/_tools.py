"""Tool definitions, converted to the one form that sessions use."""

from typing import Any

from blocks.formats import Json, obj, objs, string


def definitions(tools: Any) -> tuple[Json, ...]:
    """`tools` in the form `name`, `description`, `input_schema`; tools without a schema are left out."""
    return tuple(found for tool in objs(tools) if (found := _definition(tool)))


def _definition(tool: Json) -> Json:
    function = obj(tool.get("function")) or tool
    schema = function.get("input_schema", function.get("parameters"))
    name = string(function.get("name"))
    if not name or not isinstance(schema, dict):
        return {}
    return {
        "name": name,
        "description": string(function.get("description")),
        "input_schema": obj(schema),
    }
