"""Validation of a request against the rules of Chat Completions; the input may be any data.

Most rules concern one message or tool; the result is cached while the next request contains the same
object. The other rules concern the whole dialogue, but use only small facts about each message.

The rules are those of the strictest reader among OpenAI, compatible servers, and the templates that convert
messages to a model's own format.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, TypeAlias, cast

import attrs

from render.policy._provider import Model, Violation
from render.providers._facts import Verdicts, items, violation
from render.providers.openai._checks import ToolFacts, check_cache, check_names, check_sizes
from render.providers.openai.chat.validator._message_rules import MessageFacts, message_facts
from render.providers.openai.chat.validator._rules import Rule
from render.providers.openai.chat.validator._tool_rules import tool_facts

Json: TypeAlias = Mapping[str, Any]


@attrs.define(eq=False)
class ChatValidator:
    """Validates the requests of a growing conversation one after another."""

    _tools: Verdicts[ToolFacts] = attrs.field(init=False, factory=lambda: Verdicts(tool_facts))
    _messages: Verdicts[MessageFacts] = attrs.field(
        init=False, factory=lambda: Verdicts(message_facts)
    )

    def check(
        self, request: Mapping[str, Any], model: Model | None = None
    ) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is.

        Messages and tools of earlier requests must not have been mutated since.
        """
        unreadable = tuple(_check_shape(request))
        return unreadable or tuple(self._violations(request, model))

    def _violations(self, request: Json, model: Model | None) -> Iterator[Violation]:
        tools = self._tools.on(items(request.get("tools")))
        messages = self._messages.on(items(request.get("messages")))
        noted = [(index, facts) for index, facts in enumerate(messages) if facts.noted]
        for index, tool in enumerate(tools):
            yield from (fault.below(f"tools.{index}") for fault in tool.faults)
        for index, facts in noted:
            yield from (fault.below(f"messages.{index}") for fault in facts.faults)
        if not messages:
            yield violation(Rule.NO_MESSAGES, "messages")
        yield from check_names([tool.name for tool in tools], Rule)
        yield from _check_roles(messages)
        yield from _check_pairs(messages)
        marked = next((f"messages.{index}" for index, facts in noted if facts.marks), "")
        yield from check_cache(request, marked, model, Rule)
        yield from check_sizes(messages, "messages", Rule)
        yield from _check_output(request, model)


def _check_shape(request: object) -> Iterator[Violation]:
    """Check the shapes without which the server cannot read the request."""
    if not isinstance(request, Mapping):
        yield violation(Rule.SHAPE, "request", "an object")
        return
    known = cast("Json", request)
    for name in ("messages", "tools"):
        if known.get(name) is not None and not isinstance(known[name], list | tuple):
            yield violation(Rule.SHAPE, name, "an array")


def _check_roles(messages: Sequence[MessageFacts]) -> Iterator[Violation]:
    """Check that neither the user nor the model speaks twice in a row."""
    roles = "".join(map(attrgetter("letter"), messages))
    if not any(wrong in roles for wrong in ("uu", "aa")):
        return
    for index, (before, after) in enumerate(pairwise(messages), start=1):
        if before.role == after.role and after.role in ("user", "assistant"):
            yield violation(Rule.NOT_ALTERNATING, f"messages.{index}")


def _check_pairs(messages: Sequence[MessageFacts]) -> Iterator[Violation]:
    """Check that results directly follow their calls, each once; the common case is decided by comparing
    two sequences."""
    calls = list(chain.from_iterable(map(attrgetter("asked"), messages)))
    results = [facts.answered for facts in messages if facts.answered]
    roles, begun = (map(attrgetter(name), messages) for name in ("letter", "begins"))
    if calls == results and len(set(calls)) == len(calls) and "".join(roles) == "".join(begun):
        return
    seen: set[str] = set()
    asked: tuple[str, ...] = ()
    answered: set[str] = set()
    asking = 0
    for index, facts in enumerate(messages):
        if facts.role == "tool":
            if facts.answered and facts.answered not in asked:
                yield violation(Rule.RESULT_UNEXPECTED, f"messages.{index}")
            elif facts.answered in answered:
                yield violation(Rule.RESULT_DUPLICATE, f"messages.{index}", facts.answered)
            answered.add(facts.answered)
            continue
        yield from _unanswered(asking, asked, answered)
        for call in facts.asked:
            if call in seen:
                yield violation(Rule.CALL_ID_DUPLICATE, f"messages.{index}", call)
            seen.add(call)
        asking, asked, answered = index, facts.asked, set[str]()
    yield from _unanswered(asking, asked, answered)


def _unanswered(index: int, asked: Sequence[str], answered: set[str]) -> Iterator[Violation]:
    if missing := [call for call in asked if call not in answered]:
        yield violation(Rule.CALL_UNANSWERED, f"messages.{index}", ", ".join(missing))


def _check_output(request: Json, model: Model | None) -> Iterator[Violation]:
    for name in ("max_completion_tokens", "max_tokens"):
        most: object = request.get(name)
        if most is None:
            continue
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            yield violation(Rule.SHAPE, name, "a positive integer")
        elif model is not None and most > model.output_tokens_max:
            yield violation(Rule.MAX_TOKENS, name, most, model.output_tokens_max)
