"""Rules for tools."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import PartFacts, fields, scanned
from render.providers.gemini._kinds import NAME
from render.providers.gemini.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]

_NAME: Final = re.compile(NAME)
_SCHEMAS: Final = ("parameters", "parametersJsonSchema")


@attrs.define(eq=False)
class ToolFacts(PartFacts):
    """Facts about one entry of `tools`."""

    names: tuple[str, ...] = ()


def tool_facts(tool: object) -> ToolFacts:
    """Check one entry of `tools`; tools that the provider runs itself have no rules here."""
    return scanned(ToolFacts(source=tool), Rule.SHAPE, _scan)


def _scan(tool: Json, facts: ToolFacts) -> None:
    found: object = tool.get("functionDeclarations", [])
    if not isinstance(found, list):
        facts.fault(Rule.SHAPE, "", "an array", field="functionDeclarations")
        return
    for index, function in enumerate(cast("list[object]", found)):
        _scan_function(fields(function), f"functionDeclarations.{index}", facts)


def _scan_function(function: Json, at: str, facts: ToolFacts) -> None:
    name: object = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        facts.fault(Rule.TOOL_NAME, at, field="name")
    else:
        facts.names = (*facts.names, name)
    given = [function[field] for field in _SCHEMAS if field in function]
    kinds = [fields(schema).get("type") for schema in given]
    if len(given) > 1 or any(str(kind).lower() != "object" for kind in kinds):
        facts.fault(Rule.TOOL_SCHEMA, at, name)
