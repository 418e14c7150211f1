"""Rules for tools."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from render.providers._facts import scanned
from render.providers.openai._checks import ToolFacts, scan_name, scan_schema
from render.providers.openai.responses.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]

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
"""Tools that the server runs or defines. [sdk]"""


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`."""
    return scanned(ToolFacts(source=tool), Rule.SHAPE, _scan)


def _scan(tool: Json, facts: ToolFacts) -> None:
    kind: object = tool.get("type")
    if kind in ("function", "custom"):
        scan_name(tool, facts, Rule)
        if kind == "function":
            scan_schema(tool, facts, Rule)
    elif not isinstance(kind, str) or kind not in _HOSTED:
        facts.fault(Rule.TOOL_TYPE, "", kind, field="type")
