"""Validation of a request against the rules of the Messages API; the input may be any data.

Most rules concern one message, tool or system block; the result is cached while the next request contains
the same object. The other rules concern the whole dialogue, but use only small facts about each message, from
the first message on that changed. So a conversation that grows by one message costs the check of that message.

Callers that mutate messages between requests must use `validate_request`, which caches nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from render.policy._provider import Violation
from render.providers._facts import Verdicts, items, joined, violation
from render.providers.anthropic._kinds import (
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    MARKS_MAX,
    REQUEST_BYTES_MAX,
    SMALL_WINDOW_TOKENS,
)
from render.providers.anthropic.validator._block_rules import scan_mark
from render.providers.anthropic.validator._dialogue_rules import Dialogue, check_dialogue
from render.providers.anthropic.validator._facts import Facts, Json, Mark
from render.providers.anthropic.validator._message_rules import MessageFacts, message_facts
from render.providers.anthropic.validator._rules import ModelRules, Rule
from render.providers.anthropic.validator._tool_rules import (
    ToolFacts,
    system_facts,
    tool_facts,
)

_INTEGER_BITS: Final = 63


def validate_request(
    request: Mapping[str, Any], model: ModelRules | None = None
) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is."""
    return RequestValidator().check(request, model)


@attrs.define(eq=False)
class RequestValidator:
    """Validates the requests of a growing conversation one after another."""

    _tools: Verdicts[ToolFacts] = attrs.field(init=False, factory=lambda: Verdicts(tool_facts))
    _system: Verdicts[Facts] = attrs.field(init=False, factory=lambda: Verdicts(system_facts))
    _messages: Verdicts[MessageFacts] = attrs.field(
        init=False, factory=lambda: Verdicts(message_facts)
    )
    _dialogue: Dialogue = attrs.field(init=False, factory=Dialogue)

    def check(
        self, request: Mapping[str, Any], model: ModelRules | None = None
    ) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is.

        Messages, tools and system blocks of earlier requests must not have been mutated since.
        """
        unreadable = tuple(_check_shape(request))
        return unreadable or tuple(self._violations(request, model))

    def _violations(
        self, request: Mapping[str, Any], model: ModelRules | None
    ) -> Iterator[Violation]:
        system = request.get("system")
        tools = self._tools.on(items(request.get("tools")))
        prompt = self._system.on([system] if isinstance(system, str) else items(system))
        dialogue = self._dialogue
        dialogue.follow(self._messages.on(items(request.get("messages"))))
        messages, noted = dialogue.messages, dialogue.noted
        parts: list[tuple[str, Facts]] = [
            *((f"tools.{index}", tool) for index, tool in enumerate(tools)),
            *_prompt_parts(system, prompt),
            *((f"messages.{index}", messages[index]) for index in noted),
        ]
        yield from (fault.below(place) for place, facts in parts for fault in facts.faults)
        yield from _check_names(tools)
        yield from check_dialogue(dialogue, request, model)
        yield from _check_marks(parts, request, messages)
        yield from _check_images([messages[index] for index in noted], model)
        yield from _check_size(dialogue.size + sum(facts.size for facts in (*tools, *prompt)))
        yield from _check_max_tokens(request.get("max_tokens"), model)


def _prompt_parts(system: object, prompt: Sequence[Facts]) -> Iterator[tuple[str, Facts]]:
    for index, facts in enumerate(prompt):
        yield ("system" if isinstance(system, str) else f"system.{index}"), facts


def _check_shape(request: object) -> Iterator[Violation]:
    """Check the shapes without which the server cannot read the request."""
    if not isinstance(request, Mapping):
        yield violation(Rule.SHAPE, "request", "dictionary")
        return
    for field in ("tools", "system", "messages"):
        value = cast("Json", request).get(field)
        string_allowed = field == "system" and isinstance(value, str)
        if value is not None and not string_allowed and not isinstance(value, list | tuple):
            yield violation(Rule.SHAPE, field, "list")


# Checks of the whole request.


def _check_names(tools: Sequence[ToolFacts]) -> Iterator[Violation]:
    """Check that no two tools have the same name."""
    seen = {""}
    for index, tool in enumerate(tools):
        if tool.name and tool.name in seen:
            yield violation(Rule.TOOL_NAME_DUPLICATE, f"tools.{index}")
        seen.add(tool.name)


def _check_marks(
    parts: Sequence[tuple[str, Facts]], request: Json, messages: Sequence[MessageFacts]
) -> Iterator[Violation]:
    """Check the number and the order of all cache marks."""
    marks = [(place, mark) for place, facts in parts for mark in facts.marks]
    if "cache_control" in request:
        automatic = Facts(source=request)
        scan_mark(request, "", automatic)
        yield from (fault.below("") for fault in automatic.faults)
        for mark in automatic.marks:
            last = _last_block_of(messages)
            explicit = next(
                (known.ttl for at, known in marks if joined(at, known.at) == last), None
            )
            if explicit is None:
                marks.append((last, mark))
            elif explicit != mark.ttl:
                yield violation(Rule.MARK_CONFLICT, last, field="cache_control.ttl")
    if len(marks) > MARKS_MAX:
        place, mark = marks[MARKS_MAX]
        yield violation(Rule.MARKS_MAX, joined(place, mark.at), len(marks))
    yield from _check_order(marks)


def _check_order(marks: Sequence[tuple[str, Mark]]) -> Iterator[Violation]:
    short_seen = False
    for place, mark in marks:
        if mark.ttl == "5m":
            short_seen = True
        elif short_seen:
            yield violation(Rule.MARK_ORDER, joined(place, mark.at), field="cache_control.ttl")


def _last_block_of(messages: Sequence[MessageFacts]) -> str:
    """Place of the block to which an automatic cache mark applies."""
    if not messages:
        return "messages"
    return f"messages.{len(messages) - 1}.content.{max(len(messages[-1].kinds) - 1, 0)}"


def _check_images(noted: Sequence[Facts], model: ModelRules | None) -> Iterator[Violation]:
    """Check the number of images in all messages; models with a small window accept fewer."""
    images = sum(facts.images for facts in noted)
    small = model is not None and model.tokens_window <= SMALL_WINDOW_TOKENS
    images_max = IMAGES_MAX_SMALL_WINDOW if small else IMAGES_MAX
    if images > images_max:
        yield violation(Rule.IMAGES_MAX, "messages", images, images_max)


def _check_size(size: int) -> Iterator[Violation]:
    """Check a lower bound of the request's size in bytes."""
    if size > REQUEST_BYTES_MAX:
        yield violation(Rule.REQUEST_BYTES, "request", size)


def _check_max_tokens(max_tokens: Any, model: ModelRules | None) -> Iterator[Violation]:
    """Check `max_tokens`; 0 is valid, and only warms the cache."""
    if max_tokens is None:
        return
    if not _is_count(max_tokens):
        yield violation(Rule.SHAPE, "max_tokens", "integer")
    elif model is not None and max_tokens > model.output_tokens_max:
        yield violation(Rule.MAX_TOKENS, "max_tokens", max_tokens, model.output_tokens_max)


def _is_count(value: Any) -> bool:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return plain and value >= 0 and value.bit_length() <= _INTEGER_BITS
