"""Tool definitions in any provider's shape: Anthropic's, OpenAI's for Responses or Chat, Gemini's.

A caller may use one list of tools with every provider; each provider converts them to its own shape.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import attrs

from blocks.formats import obj, string
from render.view._view import Json


@attrs.frozen(kw_only=True)
class Definition:
    """A tool, with the properties that all providers share."""

    name: str = ""
    description: str = ""
    schema: Json = attrs.field(factory=dict[str, Any])
    """JSON schema of its arguments."""
    strict: bool | None = None
    """Whether the arguments must follow the schema exactly; None: not specified."""
    free: bool = False
    """Whether it takes a text instead of arguments."""
    format: Json = attrs.field(factory=dict[str, Any])
    """The format of that text."""
    other: Json = attrs.field(factory=dict[str, Any])
    """A tool that a provider runs itself, as it was given; the other fields are then empty."""


FREE_SCHEMA: Json = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The schema for a tool that takes a text, where a provider has no such tools."""


_SCHEMAS = ("input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters")
"""Names of the schema in definitions without a type: Anthropic's and Gemini's shape."""


def open_definitions(as_sent: Callable[[str], str], names: Iterable[str]) -> list[Json]:
    """Definitions that take any arguments, one for each name as it is sent, in the order of names."""
    schema = {"type": "object"}
    return [
        {"name": name, "description": name, "input_schema": schema}
        for name in sorted({*map(as_sent, names)})
    ]


def definition_of(tool: Json) -> Definition:
    """Read a definition of any shape; never raises."""
    for nested in ("function", "custom"):
        if isinstance(inner := tool.get(nested), Mapping):
            return _read(dict(cast("Mapping[str, Any]", inner)), nested)
    kind = tool.get("type")
    if "input_schema" in tool or (kind is None and tool.get("name")):
        if kind not in (None, "custom"):
            return Definition(other=tool)
        schema = next((tool[name] for name in _SCHEMAS if name in tool), None)
        return _read({**tool, "parameters": schema}, "function")
    if kind in ("function", "custom"):
        return _read(tool, kind)
    return Definition(other=tool)


def _read(tool: Json, kind: str) -> Definition:
    strict: object = tool.get("strict")
    return Definition(
        name=str(tool.get("name") or ""),
        description=string(tool.get("description")),
        schema=obj(tool.get("parameters")),
        strict=strict if isinstance(strict, bool) else None,
        free=kind == "custom",
        format=obj(tool.get("format")),
    )
