"""Tools: the part of a request beside its input."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import PartFacts
from render.providers.openai._kinds import NAME
from render.providers.openai.responses.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]

_TOOL: Final = re.compile(NAME)
_HOSTED: Final = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
"""Tools that the server runs, or knows by itself. [sdk]"""


@attrs.define(eq=False)
class ToolFacts(PartFacts):
    """Facts about one tool."""

    name: str = ""
    """Empty when it has none."""


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`."""
    facts = ToolFacts(source=tool)
    if not isinstance(tool, dict):
        facts.fault(Rule.SHAPE, "", "an object")
        return facts
    known = cast("Json", tool)
    kind: object = known.get("type")
    if kind in ("function", "custom"):
        name: object = known.get("name")
        if not isinstance(name, str) or not _TOOL.fullmatch(name):
            facts.fault(Rule.TOOL_NAME, "")
        facts.name = name if isinstance(name, str) else ""
        if kind == "function":
            _scan_schema(known, facts)
    elif not isinstance(kind, str) or kind not in _HOSTED:
        facts.fault(Rule.TOOL_TYPE, "", kind, field="type")
    return facts


def _scan_schema(tool: Json, facts: ToolFacts) -> None:
    schema: object = tool.get("parameters")
    if schema is None:
        return
    if not isinstance(schema, dict) or cast("Json", schema).get("type") != "object":
        facts.fault(Rule.TOOL_SCHEMA, "", facts.name, field="parameters")
