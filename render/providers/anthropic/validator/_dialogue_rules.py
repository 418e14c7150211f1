"""Rules between the messages of a request, checked on the facts about each message.

Whether a dialogue is in order is decided from the first message that changed; the reason is determined, from all
messages, only if it is not.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, compress, count, pairwise
from operator import attrgetter, is_not
from typing import TypeAlias, cast

import attrs

from render.policy._provider import Violation
from render.providers._facts import violation
from render.providers.anthropic._kinds import MESSAGES_MAX, THINKING_TYPES
from render.providers.anthropic.validator._facts import Json, Ref
from render.providers.anthropic.validator._message_rules import MessageFacts, joined_facts
from render.providers.anthropic.validator._rules import ModelRules, Rule

Run: TypeAlias = tuple[int, MessageFacts]
"""Consecutive messages of one role: the index of the first, and their facts as one message."""


@attrs.frozen(eq=False)
class Runs:
    """All runs of a request."""

    starts: Sequence[int]
    facts: Sequence[MessageFacts]

    def __iter__(self) -> Iterator[Run]:
        return zip(self.starts, self.facts, strict=True)


_NOTHING = MessageFacts(source=None)


@attrs.define(eq=False)
class Dialogue:
    """The messages of the latest request, and facts about all of them.

    Nearly all messages were in the request before, so only those from the first other one on are read.
    """

    messages: Sequence[MessageFacts] = ()
    noted: Sequence[int] = ()
    """Indices of the messages that must be checked individually."""
    size: int = 0
    in_order: bool = True
    """Whether roles alternate, each message answers the calls of the one before, and each call has its own id."""
    _ids: set[str] = attrs.field(factory=set[str], init=False)
    """The ids of all calls, if the dialogue is in order."""

    def follow(self, messages: Sequence[MessageFacts]) -> None:
        """Go on to the messages of the next request."""
        old = self.messages
        changed = compress(count(), map(is_not, old, messages))
        start = next(changed, min(len(old), len(messages)))
        gone, new = old[start:], messages[start:]
        noted = self.noted[: bisect_left(self.noted, start)]
        self.noted = [*noted, *(n for n, facts in enumerate(new, start) if facts.noted)]
        self.size += sum(map(_SIZE, new)) - sum(map(_SIZE, gone))
        if self.in_order:
            self._ids.difference_update(_calls(gone))
        else:
            self._ids, start = set(), 0
        self.in_order = self._read(messages, start)
        self.messages = messages

    def _read(self, messages: Sequence[MessageFacts], start: int) -> bool:
        """Note the calls from `start` on; returns whether all messages are in order, if those before are."""
        calls, known = _calls(messages[start:]), len(self._ids)
        self._ids.update(calls)
        edge = [_NOTHING]
        around = [*(messages[start - 1 : start] or edge), *messages[start:], *edge]
        return len(self._ids) == known + len(calls) and all(
            before.role != after.role and before.asked == after.answered and after.orderly
            for before, after in pairwise(around)
        )


_SIZE = attrgetter("size")


def _calls(messages: Sequence[MessageFacts]) -> list[str]:
    return list(chain.from_iterable(map(attrgetter("asked"), messages)))


def check_dialogue(
    dialogue: Dialogue, request: Json, model: ModelRules | None
) -> Iterator[Violation]:
    """Check all messages together."""
    messages, noted = dialogue.messages, dialogue.noted
    runs = Runs(range(len(messages)), messages) if dialogue.in_order else _runs_of(messages)
    yield from _check_ends(messages, runs, model)
    yield from _check_empty(messages, noted)
    if any(messages[index].role == "system" for index in noted):
        yield from _check_system(messages, runs, model)
    if not dialogue.in_order:
        yield from _check_ids(messages)
        yield from _check_pairs(runs)
    yield from _check_thinking_first(runs, request.get("thinking"))


def _runs_of(messages: Sequence[MessageFacts]) -> Runs:
    """Join consecutive messages of one role, as the server does."""
    roles = list(map(attrgetter("role"), messages))
    starts = [n for n, role in enumerate(roles) if n == 0 or role != roles[n - 1]]
    ends = pairwise([*starts, len(messages)])
    return Runs(starts, [joined_facts(messages[start:end]) for start, end in ends])


def _check_ends(
    messages: Sequence[MessageFacts], runs: Runs, model: ModelRules | None
) -> Iterator[Violation]:
    """Check the number of messages, and the roles of the first and the last."""
    if not messages:
        yield violation(Rule.NO_MESSAGES, "messages")
        return
    if len(messages) > MESSAGES_MAX:
        yield violation(Rule.MESSAGES_MAX, "messages", len(messages))
    first = runs.facts[0]
    if first.role == "assistant" and first.first_kind != "compaction":
        yield violation(Rule.FIRST_NOT_USER, "messages.0")
    last = messages[-1]
    if last.role != "assistant" or last.resumable:
        return
    place = f"messages.{len(messages) - 1}"
    if model is None or not model.prefill:
        yield violation(Rule.LAST_NOT_USER, place)
    elif last.last_text.strip() and last.last_text[-1].isspace():
        yield violation(Rule.PREFILL_TRAILING_SPACE, place)


def _check_empty(messages: Sequence[MessageFacts], noted: Sequence[int]) -> Iterator[Violation]:
    """Check that no message is empty, except perhaps a final assistant message."""
    for index in noted:
        facts = messages[index]
        final_assistant = index == len(messages) - 1 and facts.role == "assistant"
        if not facts.kinds and not final_assistant and facts.role != "system":
            yield violation(Rule.CONTENT_EMPTY, f"messages.{index}")


def _check_system(
    messages: Sequence[MessageFacts], runs: Runs, model: ModelRules | None
) -> Iterator[Violation]:
    """Check system messages between the others; one without content only sets options, so it is ignored."""
    if model is None or not model.system_messages:
        for index, facts in enumerate(messages):
            if facts.role == "system":
                yield violation(Rule.SYSTEM_REFUSED, f"messages.{index}")
        return
    edge = (-1, _NOTHING)
    around = zip([edge, *runs], runs, [*list(runs)[1:], edge], strict=False)
    for (_, before), (index, facts), (_, after) in around:
        if facts.role != "system" or not facts.kinds:
            continue
        follows = before.role == "user" or before.ends_in_server_tool
        if not follows or after.role not in {"assistant", ""}:
            yield violation(Rule.SYSTEM_PLACE, f"messages.{index}")


def _check_pairs(runs: Runs) -> Iterator[Violation]:
    """Check that each run answers the calls of the one before, and that its last block is allowed."""
    edge = (-1, _NOTHING)
    for before, after in pairwise(chain([edge], runs, [edge])):
        if before[1].asked != after[1].answered or not after[1].orderly:
            yield from _check_joint(before, after)


def _check_ids(messages: Sequence[MessageFacts]) -> Iterator[Violation]:
    """Check that no two calls in the request have the same id."""
    seen: set[str] = set()
    for index, facts in enumerate(messages):
        for ref in facts.uses:
            if ref.id in seen:
                yield violation(Rule.TOOL_USE_ID_DUPLICATE, _place(index, ref))
            seen.add(ref.id)


def _check_thinking_first(runs: Runs, thinking: object) -> Iterator[Violation]:
    """In manual thinking mode, check that the message whose calls are answered begins with thinking."""
    if not isinstance(thinking, dict) or cast("Json", thinking).get("type") != "enabled":
        return
    for index, facts in reversed(list(runs)[-2:]):
        if facts.role == "assistant":
            if facts.uses and facts.first_kind not in THINKING_TYPES:
                yield violation(
                    Rule.THINKING_FIRST,
                    f"messages.{index}.content.0",
                    facts.first_kind,
                    field="type",
                )
            return


def _check_joint(before: Run, after: Run) -> Iterator[Violation]:
    answered: set[str] = set()
    asked = frozenset(before[1].asked)
    for ref in after[1].results:
        rule = _rule_broken(ref, asked, answered)
        if rule is not None:
            yield violation(rule, _place(after[0], ref), ref.id)
        answered.add(ref.id)
    for ref in before[1].uses:
        if ref.id not in answered:
            yield violation(Rule.TOOL_USE_UNANSWERED, _place(before[0], ref), ref.id)
    if after[1].ends_in_thinking:
        yield violation(Rule.THINKING_LAST, f"messages.{after[0]}")


def _rule_broken(ref: Ref, asked: frozenset[str], answered: set[str]) -> Rule | None:
    if ref.id in answered:
        return Rule.TOOL_RESULT_DUPLICATE
    if ref.id not in asked:
        return Rule.TOOL_RESULT_UNEXPECTED
    return Rule.TOOL_RESULT_LATE if ref.late else None


def _place(start: int, ref: Ref) -> str:
    return f"messages.{start + ref.offset}.{ref.at}"
