"""Validation of a request against the rules of the Gemini API; the input may be any data.

Most rules concern one content or tool; the result is cached while the next request contains the same
object. The other rules concern the whole dialogue, but use only small facts about each content.

A request is what the client is called with: `contents` and `config`, with the field names of the REST API.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import attrs

from render.policy._provider import Model, Violation
from render.providers._facts import Verdicts, fields, items, violation
from render.providers.gemini._kinds import PICTURES_MAX
from render.providers.gemini.validator._content_rules import (
    Asked,
    ContentFacts,
    content_facts,
)
from render.providers.gemini.validator._rules import Rule
from render.providers.gemini.validator._tool_rules import ToolFacts, tool_facts

Json: TypeAlias = Mapping[str, Any]

REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
_UNSIGNED: Final = re.compile(r"(?:models/)?gemini-[12]\b")
"""Models that accept calls without a signature."""


@attrs.define(eq=False)
class ContentsValidator:
    """Validates the requests of a growing conversation one after another."""

    _tools: Verdicts[ToolFacts] = attrs.field(init=False, factory=lambda: Verdicts(tool_facts))
    _contents: Verdicts[ContentFacts] = attrs.field(
        init=False, factory=lambda: Verdicts(content_facts)
    )

    def check(
        self, request: Mapping[str, Any], model: Model | None = None
    ) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is.

        Contents and tools of earlier requests must not have been mutated since.
        """
        unreadable = tuple(_check_shape(request))
        return unreadable or tuple(self._violations(request, model))

    def _violations(self, request: Json, model: Model | None) -> Iterator[Violation]:
        config = fields(request.get("config"))
        tools = self._tools.on(items(config.get("tools")))
        contents = self._contents.on(items(request.get("contents")))
        for index, tool in enumerate(tools):
            yield from (fault.below(f"tools.{index}") for fault in tool.faults)
        for index, facts in enumerate(contents):
            if facts.noted:
                yield from (fault.below(f"contents.{index}") for fault in facts.faults)
        yield from _check_names(tools)
        yield from _check_roles(contents)
        yield from _check_pairs(contents)
        if model is None or not _UNSIGNED.match(model.name):
            yield from _check_signatures(contents)
        yield from _check_limits(config, contents, model)


def _check_shape(request: object) -> Iterator[Violation]:
    """Check the shapes without which the server cannot read the request."""
    known = fields(request)
    if not isinstance(request, Mapping):
        yield violation(Rule.SHAPE, "request", "an object")
        return
    if not isinstance(known.get("contents", []), list | tuple):
        yield violation(Rule.SHAPE, "contents", "an array")
    config: object = known.get("config", {})
    if not isinstance(config, dict):
        yield violation(Rule.SHAPE, "config", "an object")
        return
    inner = fields(known.get("config"))
    if not isinstance(inner.get("tools", []), list | tuple):
        yield violation(Rule.SHAPE, "tools", "an array")
    parts: object = fields(inner.get("systemInstruction", {"parts": []})).get("parts")
    for index, part in enumerate(items(parts)):
        if not isinstance(fields(part).get("text"), str):
            yield violation(Rule.SHAPE, f"systemInstruction.parts.{index}", "a text")
    if not isinstance(parts, list | tuple):
        yield violation(Rule.SHAPE, "systemInstruction", "a content with parts")


def _check_names(tools: Sequence[ToolFacts]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        for name in tool.names:
            if name in seen:
                yield violation(Rule.TOOL_NAME_DUPLICATE, f"tools.{index}", name)
            seen.add(name)


def _check_roles(contents: Sequence[ContentFacts]) -> Iterator[Violation]:
    if not contents:
        yield violation(Rule.NO_CONTENTS, "contents")
        return
    if contents[0].role == "model":
        yield violation(Rule.FIRST_ROLE, "contents.0")
    if contents[-1].role == "model":
        yield violation(Rule.LAST_ROLE, f"contents.{len(contents) - 1}")


def _check_pairs(contents: Sequence[ContentFacts]) -> Iterator[Violation]:
    """Check that calls follow a user content, and that the next content has their responses."""
    for index, facts in enumerate(contents):
        before = contents[index - 1] if index else None
        if facts.calls and before is not None and before.role == "model":
            yield violation(Rule.CALL_PLACE, f"contents.{index}")
        asked = before.calls if before is not None else ()
        if facts.responses and not asked:
            yield violation(Rule.RESPONSE_UNEXPECTED, f"contents.{index}")
        elif len(facts.responses) != len(asked):
            yield violation(Rule.CALL_UNANSWERED, f"contents.{index - 1}")
        elif facts.responses:
            yield from _check_answers(asked, facts.responses, f"contents.{index}")


def _check_answers(
    asked: Sequence[Asked], answered: Sequence[Asked], place: str
) -> Iterator[Violation]:
    ids = Counter(call.id for call in asked)
    names = {call.id: call.name for call in asked}
    for response in answered:
        if not response.id:  # matched by position instead
            continue
        ids[response.id] -= 1
        if ids[response.id] < 0:
            yield violation(Rule.RESPONSE_ID, place, response.id)
        elif names[response.id] != response.name:
            yield violation(Rule.RESPONSE_NAME, place, response.name)


def _check_signatures(contents: Sequence[ContentFacts]) -> Iterator[Violation]:
    """Check the signatures of the current turn, which begins with the user's last text."""
    said = (n for n, facts in enumerate(contents) if _begins_turn(facts))
    begin = max(said, default=0)
    for index, facts in enumerate(contents[begin:], start=begin):
        if facts.calls and not facts.calls[0].signed:
            yield violation(
                Rule.SIGNATURE_MISSING, f"contents.{index}", facts.calls[0].name, index + 1
            )


def _begins_turn(facts: ContentFacts) -> bool:
    return facts.role == "user" and facts.speaks and not facts.responses


def _check_limits(
    config: Json, contents: Sequence[ContentFacts], model: Model | None
) -> Iterator[Violation]:
    images = sum(map(attrgetter("images"), contents))
    if images > PICTURES_MAX:
        yield violation(Rule.IMAGES_MAX, "contents", images, PICTURES_MAX)
    size = sum(map(attrgetter("size"), contents))
    if size > REQUEST_BYTES_MAX:
        yield violation(Rule.REQUEST_BYTES, "request", size)
    most: object = config.get("maxOutputTokens")
    if most is None:
        return
    if not isinstance(most, int) or isinstance(most, bool):
        yield violation(Rule.SHAPE, "maxOutputTokens", "an integer")
    elif most < 1 or (model is not None and most > model.output_tokens_max):
        known = model.output_tokens_max if model else "the model's maximum"
        yield violation(Rule.MAX_TOKENS, "maxOutputTokens", most, known)
