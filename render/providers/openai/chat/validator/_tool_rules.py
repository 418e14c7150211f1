"""Tools: the part of a request beside its messages."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import PartFacts
from render.providers.openai._kinds import NAME
from render.providers.openai.chat.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]

_TOOL: Final = re.compile(NAME)


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
    found: object = known.get(kind) if kind in ("function", "custom") else None
    if not isinstance(found, dict):
        facts.fault(Rule.TOOL_TYPE, "", kind, field="type")
        return facts
    inner = cast("Json", found)
    name: object = inner.get("name")
    if not isinstance(name, str) or not _TOOL.fullmatch(name):
        facts.fault(Rule.TOOL_NAME, "")
    facts.name = name if isinstance(name, str) else ""
    schema: object = inner.get("parameters")
    is_object = isinstance(schema, dict) and cast("Json", schema).get("type") == "object"
    if schema is not None and not is_object:
        facts.fault(Rule.TOOL_SCHEMA, "", facts.name, field="parameters")
    return facts
