"""Rules for tools and the system prompt."""

from typing import Final, cast

import attrs

from render.providers.anthropic.validator._block_rules import (
    scan_mark,
    scan_name,
    scan_string,
    scan_system_text,
)
from render.providers.anthropic.validator._facts import Facts, Json
from render.providers.anthropic.validator._rules import Rule

# Entries for a family of tools, which have no name.
_NAMELESS: Final = frozenset(
    {"browser_toolset_20260801", "computer_toolset_20260801", "mcp_toolset"}
)


@attrs.define(eq=False, kw_only=True)
class ToolFacts(Facts):
    """Facts about one tool."""

    name: str = ""
    """Empty if it has none."""


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`."""
    facts = ToolFacts(source=tool)
    if isinstance(tool, dict):
        _scan_tool(cast("Json", tool), facts)
    else:
        facts.fault(Rule.SHAPE, "", "dictionary")
    return facts


def system_facts(block: object) -> Facts:
    """Check one block of the system prompt, or all of it if it is a string."""
    facts = Facts(source=block)
    if not isinstance(block, str):
        scan_system_text(block, "", facts)
    elif block:
        scan_string(block, "", facts)
    return facts


def _scan_tool(tool: Json, facts: ToolFacts) -> None:
    scan_mark(tool, "", facts)
    kind, name = tool.get("type"), tool.get("name")
    if kind is None or kind == "custom":
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or cast("Json", schema).get("type") != "object":
            facts.fault(Rule.TOOL_SCHEMA, "", field="custom.input_schema")
    elif not isinstance(kind, str):
        facts.fault(Rule.SHAPE, "", "string", field="type")
    elif kind in _NAMELESS:
        return
    scan_name(name, "", "custom.name", facts)
    facts.name = name if isinstance(name, str) else ""
