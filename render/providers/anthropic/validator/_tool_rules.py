"""Tools and the system prompt: the parts of a request before its messages."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from render.policy._provider import Violation
from render.providers.anthropic.validator._block_rules import (
    scan_name,
    scan_string,
    scan_system_text,
)
from render.providers.anthropic.validator._facts import (
    Facts,
    Json,
    Scan,
    as_object,
    as_string,
    violation,
)
from render.providers.anthropic.validator._request_rules import scan_mark
from render.providers.anthropic.validator._rules import Rule

# Entries that stand for a family of tools and carry no name of their own.
_NAMELESS: Final = frozenset(
    {"browser_toolset_20260801", "computer_toolset_20260801", "mcp_toolset"}
)


@attrs.frozen(eq=False, kw_only=True)
class ToolFacts(Facts):
    """Facts about one tool."""

    name: str = ""


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`."""
    scan, name = Scan(), ""
    known = as_object(tool)
    if known is None:
        scan.fault(Rule.SHAPE, "", "dictionary")
    else:
        name = _scan_tool(known, scan)
    return ToolFacts(source=tool, name=name, **scan.collected())


def system_facts(block: object) -> Facts:
    """Check one block of the system prompt, or the whole of it when it is a string."""
    scan = Scan()
    if not isinstance(block, str):
        scan_system_text(block, "", scan)
    elif block:
        scan_string(block, "", scan)
    return Facts(source=block, **scan.collected())


def check_names(tools: Sequence[ToolFacts]) -> Iterator[Violation]:
    """No two tools of one name."""
    seen = {""}
    for index, tool in enumerate(tools):
        if tool.name and tool.name in seen:
            yield violation(Rule.TOOL_NAME_DUPLICATE, f"tools.{index}")
        seen.add(tool.name)


def _scan_tool(tool: Json, scan: Scan) -> str:
    """Check a tool; give its name, or "" when it has none."""
    scan_mark(tool, "", scan)
    kind = tool.get("type")
    if kind is None or kind == "custom":
        schema = as_object(tool.get("input_schema"))
        if schema is None or schema.get("type") != "object":
            scan.fault(Rule.TOOL_SCHEMA, "", field="custom.input_schema")
    elif not isinstance(kind, str):
        scan.fault(Rule.SHAPE, "", "string", field="type")
    elif kind in _NAMELESS:
        return ""
    scan_name(tool.get("name"), "", "custom.name", scan)
    return as_string(tool.get("name"))
