"""Validation of a request against the rules of the Responses API; the input may be any data.

Most rules concern one item or tool; the result is cached while the next request contains the same object.
The other rules concern the whole input, but use only small facts about each item.

Of the request's other fields, only those that the renderer writes are checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from render.policy._provider import Model, Violation
from render.providers._facts import Verdicts, items, violation
from render.providers.openai._checks import ToolFacts, check_cache, check_names, check_sizes
from render.providers.openai.responses.validator._item_rules import ItemFacts, item_facts
from render.providers.openai.responses.validator._rules import Rule
from render.providers.openai.responses.validator._tool_rules import tool_facts

Json: TypeAlias = Mapping[str, Any]

OUTPUT_TOKENS_MIN: Final = 16


@attrs.define(eq=False)
class ResponsesValidator:
    """Validates the requests of a growing conversation one after another."""

    _tools: Verdicts[ToolFacts] = attrs.field(init=False, factory=lambda: Verdicts(tool_facts))
    _items: Verdicts[ItemFacts] = attrs.field(init=False, factory=lambda: Verdicts(item_facts))

    def check(
        self, request: Mapping[str, Any], model: Model | None = None
    ) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is.

        Items and tools of earlier requests must not have been mutated since.
        """
        unreadable = tuple(_check_shape(request))
        return unreadable or tuple(self._violations(request, model))

    def _violations(self, request: Json, model: Model | None) -> Iterator[Violation]:
        found: object = request.get("input")
        said = [{"role": "user", "content": found}] if isinstance(found, str) else found
        tools, things = self._tools.on(items(request.get("tools"))), self._items.on(items(said))
        noted = [(index, facts) for index, facts in enumerate(things) if facts.noted]
        for index, tool in enumerate(tools):
            yield from (fault.below(f"tools.{index}") for fault in tool.faults)
        for index, facts in noted:
            yield from (fault.below(f"input.{index}") for fault in facts.faults)
        if not things:
            yield violation(Rule.NO_INPUT, "input")
        yield from check_names([tool.name for tool in tools], Rule)
        yield from _check_pairs(things)
        yield from _check_reasoning(things)
        yield from _check_trigger(things)
        marked = next((f"input.{index}" for index, facts in noted if facts.marks), "")
        yield from check_cache(request, marked, model, Rule)
        yield from check_sizes(things, "input", Rule)
        yield from _check_output(request, model)


def _check_shape(request: object) -> Iterator[Violation]:
    """Check the shapes without which the server cannot read the request."""
    if not isinstance(request, Mapping):
        yield violation(Rule.SHAPE, "request", "an object")
        return
    known = cast("Json", request)
    found: object = known.get("input")
    if found is not None and not isinstance(found, str | list | tuple):
        yield violation(Rule.SHAPE, "input", "a string or an array")
    if known.get("tools") is not None and not isinstance(known["tools"], list | tuple):
        yield violation(Rule.SHAPE, "tools", "an array")
    if known.get("instructions") is not None and not isinstance(known["instructions"], str):
        yield violation(Rule.SHAPE, "instructions", "a string")


def _check_pairs(things: Sequence[ItemFacts]) -> Iterator[Violation]:
    """Check that each call has one output, after it."""
    open_: dict[str, tuple[int, str]] = {}
    done: set[str] = set()
    for index, facts in enumerate(things):
        asked, wanted = facts.asked
        if asked:
            if asked in open_ or asked in done:
                yield violation(Rule.CALL_ID_DUPLICATE, f"input.{index}", asked)
            open_[asked] = (index, wanted)
        answered, kind = facts.answered
        if answered:
            found = open_.pop(answered, None)
            if found is None:
                rule = Rule.OUTPUT_DUPLICATE if answered in done else Rule.OUTPUT_UNEXPECTED
                yield violation(rule, f"input.{index}", answered)
            elif found[1] != kind:
                yield violation(Rule.OUTPUT_KIND, f"input.{index}", kind)
            done.add(answered)
    for call, (index, _) in open_.items():
        yield violation(Rule.CALL_UNANSWERED, f"input.{index}", call)


def _check_reasoning(things: Sequence[ItemFacts]) -> Iterator[Violation]:
    for index, facts in enumerate(things):
        if facts.reasoning is None:
            continue
        if index + 1 == len(things) or not things[index + 1].by_model:
            yield violation(Rule.REASONING_ALONE, f"input.{index}", facts.reasoning)


def _check_trigger(things: Sequence[ItemFacts]) -> Iterator[Violation]:
    for index, facts in enumerate(things[:-1]):
        if facts.is_trigger:
            yield violation(Rule.TRIGGER_LAST, f"input.{index}")


def _check_output(request: Json, model: Model | None) -> Iterator[Violation]:
    most: object = request.get("max_output_tokens")
    if most is None:
        return
    if not isinstance(most, int) or isinstance(most, bool):
        yield violation(Rule.SHAPE, "max_output_tokens", "an integer")
    elif most < OUTPUT_TOKENS_MIN or (model is not None and most > model.output_tokens_max):
        known = model.output_tokens_max if model else "the model's maximum"
        yield violation(Rule.MAX_TOKENS, "max_output_tokens", known, most)
