"""Tools: the part of a request beside its contents."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from render.providers._facts import PartFacts, fields
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
    """Check one entry of `tools`; what the provider runs itself has no rules here."""
    facts = ToolFacts(source=tool)
    if not isinstance(tool, dict):
        facts.fault(Rule.SHAPE, "", "an object")
        return facts
    found: object = cast("Json", tool).get("functionDeclarations", [])
    if not isinstance(found, list):
        facts.fault(Rule.SHAPE, "", "an array", field="functionDeclarations")
        return facts
    for index, function in enumerate(cast("list[object]", found)):
        _scan(fields(function), f"functionDeclarations.{index}", facts)
    return facts


def _scan(function: Json, at: str, facts: ToolFacts) -> None:
    name: object = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        facts.fault(Rule.TOOL_NAME, at, field="name")
    else:
        facts.names = (*facts.names, name)
    given = [function[field] for field in _SCHEMAS if field in function]
    kinds = [fields(schema).get("type") for schema in given]
    if len(given) > 1 or any(str(kind).lower() != "object" for kind in kinds):
        facts.fault(Rule.TOOL_SCHEMA, at, name)
