"""What the validators of both APIs check in the same way: of a whole request the names of tools, the cache and
sizes; of its parts calls, tools and cache marks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from json import loads
from operator import attrgetter
from typing import Any, Final, TypeAlias

import attrs

from render.policy._model import Model
from render.policy._provider import Violation
from render.providers._facts import PartFacts, fields, violation
from render.providers.openai._kinds import MARK, NAME, PICTURES_MAX
from render.providers.openai._media import MediaFacts

REQUEST_BYTES_MAX: Final = 50 * 1024 * 1024
CACHE_KEY_LENGTH_MAX: Final = 64
_TTLS: Final = (None, "30m", "12h")
_NAME: Final = re.compile(NAME)

Json: TypeAlias = Mapping[str, Any]


def check_names(names: Sequence[str], rules: type[Enum]) -> Iterator[Violation]:
    """Check that no two tools have one name."""
    seen = {""}
    for index, name in enumerate(names):
        if name and name in seen:
            yield violation(rules["TOOL_NAME_DUPLICATE"], f"tools.{index}", name)
        seen.add(name)


def check_cache(
    request: Json, marked: str, model: Model | None, rules: type[Enum]
) -> Iterator[Violation]:
    """Check what a request says of the cache; `marked`: where the first mark is, or empty."""
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
    """Check how many images there are, and how many bytes."""
    images, size = (sum(map(attrgetter(name), facts)) for name in ("images", "size"))
    if images > PICTURES_MAX:
        yield violation(rules["IMAGES_MAX"], place, images, PICTURES_MAX)
    if size > REQUEST_BYTES_MAX:
        yield violation(rules["REQUEST_BYTES"], "request", size)


# One part of it.


@attrs.define(eq=False)
class ToolFacts(PartFacts):
    """Facts about one tool."""

    name: str = ""
    """Empty when it has none."""


def scan_name(tool: Json, facts: ToolFacts, rules: type[Enum]) -> None:
    """Check a tool's name."""
    name: object = tool.get("name")
    if not _is_name(name):
        facts.fault(rules["TOOL_NAME"], "")
    facts.name = name if isinstance(name, str) else ""


def scan_schema(tool: Json, facts: ToolFacts, rules: type[Enum]) -> None:
    """Check what a tool says of its arguments."""
    schema: object = tool.get("parameters")
    if schema is not None and fields(schema).get("type") != "object":
        facts.fault(rules["TOOL_SCHEMA"], "", facts.name, field="parameters")


def scan_call(call: Json, given: str, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check whom a call names, and what it was called with, under `given`: in `arguments` an object as JSON, in
    `input` any text."""
    if not _is_name(call.get("name")):
        facts.fault(rules["CALL_NAME"], at, field="name")
    said: object = call.get(given)
    facts.size += len(said) if isinstance(said, str) else 0
    if not isinstance(said, str) or (given == "arguments" and not _is_object(said)):
        facts.fault(rules["ARGUMENTS"], at, field="arguments")


def scan_mark(mark: object, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check what a cache mark says; where it stands is for who knows that to check."""
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
