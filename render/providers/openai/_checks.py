"""Checks that the validators of both APIs share: tool names, cache options and sizes of a request; calls,
tools and cache marks of its parts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from json import loads
from operator import attrgetter
from typing import Any, Final, TypeAlias

import attrs

from render.policy._provider import Model, Violation
from render.providers._facts import PartFacts, fields, violation
from render.providers.openai._kinds import MARK, NAME, PICTURES_MAX
from render.providers.openai._media import MediaFacts

REQUEST_BYTES_MAX: Final = 50 * 1024 * 1024
CACHE_KEY_LENGTH_MAX: Final = 64
_TTLS: Final = (None, "30m", "12h")
_NAME: Final = re.compile(NAME)

Json: TypeAlias = Mapping[str, Any]


def check_names(names: Sequence[str], rules: type[Enum]) -> Iterator[Violation]:
    """Check that no two tools have the same name."""
    seen = {""}
    for index, name in enumerate(names):
        if name and name in seen:
            yield violation(rules["TOOL_NAME_DUPLICATE"], f"tools.{index}", name)
        seen.add(name)


def check_cache(
    request: Json, marked: str, model: Model | None, rules: type[Enum]
) -> Iterator[Violation]:
    """Check the cache options of a request; `marked` is the place of the first cache mark, or empty."""
    options: object = request.get("prompt_cache_options")
    knows = model is None or model.cache_kind == "marks"
    if marked and not knows:
        yield violation(rules["MARK_MODEL"], marked)
    if options is not None:
        if fields(options).get("mode", "implicit") not in ("implicit", "explicit"):
            yield violation(rules["CACHE_OPTIONS"], "prompt_cache_options")
        if not knows:
            yield violation(rules["MARK_MODEL"], "prompt_cache_options")
    key: object = request.get("prompt_cache_key")
    if key is not None and not isinstance(key, str):
        yield violation(rules["SHAPE"], "prompt_cache_key", "a string")
    elif key and len(key) > CACHE_KEY_LENGTH_MAX:
        yield violation(rules["CACHE_KEY"], "prompt_cache_key")


def check_sizes(facts: Sequence[MediaFacts], place: str, rules: type[Enum]) -> Iterator[Violation]:
    """Check the number of images and the size in bytes."""
    images, size = (sum(map(attrgetter(name), facts)) for name in ("images", "size"))
    if images > PICTURES_MAX:
        yield violation(rules["IMAGES_MAX"], place, images, PICTURES_MAX)
    if size > REQUEST_BYTES_MAX:
        yield violation(rules["REQUEST_BYTES"], "request", size)


# Checks of one part.


@attrs.define(eq=False)
class ToolFacts(PartFacts):
    """Facts about one tool."""

    name: str = ""
    """Empty if it has none."""


def scan_name(tool: Json, facts: ToolFacts, rules: type[Enum]) -> None:
    """Check the name of a tool."""
    name: object = tool.get("name")
    if not _is_name(name):
        facts.fault(rules["TOOL_NAME"], "")
    facts.name = name if isinstance(name, str) else ""


def scan_schema(tool: Json, facts: ToolFacts, rules: type[Enum]) -> None:
    """Check the argument schema of a tool."""
    schema: object = tool.get("parameters")
    if schema is not None and fields(schema).get("type") != "object":
        facts.fault(rules["TOOL_SCHEMA"], "", facts.name, field="parameters")


def scan_call(call: Json, given: str, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check the name of a call and its input in the field `given`: in `arguments` a JSON object as text, in
    `input` any text."""
    if not _is_name(call.get("name")):
        facts.fault(rules["CALL_NAME"], at, field="name")
    said: object = call.get(given)
    facts.size += len(said) if isinstance(said, str) else 0
    if not isinstance(said, str) or (given == "arguments" and not _is_object(said)):
        facts.fault(rules["ARGUMENTS"], at, field="arguments")


def scan_mark(mark: object, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check the form of a cache mark; its place is checked by the caller."""
    facts.marks += 1
    known = fields(mark)
    if known.get("mode") != "explicit" or known.get("ttl") not in _TTLS:
        facts.fault(rules["MARK_FORM"], at, field=MARK)


def _is_name(found: object) -> bool:
    return isinstance(found, str) and _NAME.fullmatch(found) is not None


def _is_object(text: str) -> bool:
    try:
        return isinstance(loads(text), dict)
    except (ValueError, RecursionError):
        return False
