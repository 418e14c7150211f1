"""Rules for tools."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from render.providers._facts import scanned
from render.providers.openai._checks import ToolFacts, scan_name, scan_schema
from render.providers.openai.chat.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`."""
    return scanned(ToolFacts(source=tool), Rule.SHAPE, _scan)


def _scan(tool: Json, facts: ToolFacts) -> None:
    kind: object = tool.get("type")
    found: object = tool.get(kind) if kind in ("function", "custom") else None
    if not isinstance(found, dict):
        facts.fault(Rule.TOOL_TYPE, "", kind, field="type")
        return
    inner = cast("Json", found)
    scan_name(inner, facts, Rule)
    scan_schema(inner, facts, Rule)
