"""Would the provider take this request? Read from plain dicts, trusting nobody.

Two kinds of rules. Most look at one message, tool or system block by itself; their verdict is kept
for as long as the next request holds the very same object. The rest look at the whole dialogue, but
only through small facts about each message. So a long conversation that grows by a message pays for
that message, and for a few passes over a list of facts.

Keeping verdicts by identity is sound under two conditions: an object once checked is never mutated
(the encoder replaces messages, it does not edit them), and no other object gets its id (the facts
hold the object). Whoever cannot promise the first calls `validate_request`, which remembers nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any, Generic, TypeVar, cast

import attrs

from render.policy._provider import Violation
from render.providers.anthropic.validator._dialogue_rules import (
    check_empty,
    check_ends,
    check_ids,
    check_pairs,
    check_system,
    check_thinking_first,
    last_block_of,
    runs_of,
)
from render.providers.anthropic.validator._facts import Facts, Json, as_array, violation
from render.providers.anthropic.validator._message_rules import MessageFacts, message_facts
from render.providers.anthropic.validator._request_rules import (
    check_images,
    check_marks,
    check_max_tokens,
    check_size,
    placed_marks,
)
from render.providers.anthropic.validator._rules import ModelRules, Rule
from render.providers.anthropic.validator._tool_rules import (
    ToolFacts,
    check_names,
    system_facts,
    tool_facts,
)

F = TypeVar("F", bound=Facts)


def validate_request(
    request: Mapping[str, Any], model: ModelRules | None = None
) -> tuple[Violation, ...]:
    """Every reason why the provider would refuse `request`; never raises, whatever it is."""
    return RequestValidator().check(request, model)


@attrs.define(eq=False)
class _Verdicts(Generic[F]):
    """Facts by identity of their object, for the objects of the latest request."""

    look: Callable[[object], F]
    things: Sequence[object] = ()
    facts: Sequence[F] = ()

    def on(self, things: Sequence[object]) -> Sequence[F]:
        """Facts about each of `things`; whatever is not among them is forgotten.

        Nearly all of them stand where they stood, so only the others are looked up.
        """
        moved = list(compress(count(), map(is_not, things, self.things)))
        gone = [*map(self.facts.__getitem__, moved), *self.facts[len(things) :]]
        known = {id(facts.source): facts for facts in gone}
        facts = list(self.facts[: len(things)])
        for index in moved:
            facts[index] = known.get(id(things[index])) or self.look(things[index])
        facts += [known.get(id(thing)) or self.look(thing) for thing in things[len(facts) :]]
        self.things, self.facts = things, facts
        return facts


@attrs.define(eq=False)
class RequestValidator:
    """Validates one request after the other of a growing conversation."""

    _tools: _Verdicts[ToolFacts] = attrs.field(init=False, factory=lambda: _Verdicts(tool_facts))
    _system: _Verdicts[Facts] = attrs.field(init=False, factory=lambda: _Verdicts(system_facts))
    _messages: _Verdicts[MessageFacts] = attrs.field(
        init=False, factory=lambda: _Verdicts(message_facts)
    )

    def check(
        self, request: Mapping[str, Any], model: ModelRules | None = None
    ) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is.

        Messages, tools and system blocks that were part of the previous request must not have been
        mutated since.
        """
        unreadable = tuple(_check_shape(request))
        return unreadable or tuple(self._violations(request, model))

    def _violations(
        self, request: Mapping[str, Any], model: ModelRules | None
    ) -> Iterator[Violation]:
        system = request.get("system")
        tools = self._tools.on(_items(request.get("tools")))
        prompt = self._system.on([system] if isinstance(system, str) else _items(system))
        messages = self._messages.on(_items(request.get("messages")))

        noted = list(compress(count(), map(attrgetter("noted"), messages)))
        parts: list[tuple[str, Facts]] = [
            *((f"tools.{index}", tool) for index, tool in enumerate(tools)),
            *_prompt_parts(system, prompt),
            *((f"messages.{index}", messages[index]) for index in noted),
        ]
        runs = runs_of(messages)
        yield from (fault.below(place) for place, facts in parts for fault in facts.faults)
        yield from check_names(tools)
        yield from check_ends(messages, runs, model)
        yield from check_empty(messages, noted)
        if any(messages[index].role == "system" for index in noted):
            yield from check_system(messages, runs, model)
        yield from check_ids(messages)
        yield from check_pairs(runs)
        yield from check_thinking_first(runs, request.get("thinking"))
        yield from check_marks(placed_marks(parts), request, last_block_of(messages))
        yield from check_images([messages[index] for index in noted], model)
        yield from check_size([*tools, *prompt, *messages])
        yield from check_max_tokens(request.get("max_tokens"), model)


def _items(value: object) -> Sequence[object]:
    return as_array(value) or ()


def _prompt_parts(system: object, prompt: Sequence[Facts]) -> Iterator[tuple[str, Facts]]:
    for index, facts in enumerate(prompt):
        yield ("system" if isinstance(system, str) else f"system.{index}"), facts


def _check_shape(request: object) -> Iterator[Violation]:
    """Look for what stops the server from reading on."""
    if not isinstance(request, Mapping):
        yield violation(Rule.SHAPE, "request", "dictionary")
        return
    for field in ("tools", "system", "messages"):
        value = cast("Json", request).get(field)
        string_allowed = field == "system" and isinstance(value, str)
        if value is not None and not string_allowed and as_array(value) is None:
            yield violation(Rule.SHAPE, field, "list")
