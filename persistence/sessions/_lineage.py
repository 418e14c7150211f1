"""Finds which request continues which answer, in a log with many conversations whose requests have whole histories.

A request continues the latest answer that it contains.  Its messages after that answer are new.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from blocks import text_of_parts
from blocks.formats import (
    Call,
    Content,
    Format,
    Json,
    Result,
    Said,
    messages_in,
    parts_in,
    string,
)
from persistence.sessions._exchange import Exchange

_Key: TypeAlias = tuple[str, ...]
_COMPARED: Final = 64
"""Of steps with equal answers, only this many of the latest are compared."""


@attrs.define(eq=False)
class Step:
    """A request and its place in a conversation."""

    exchange: Exchange
    root: str
    """A hash of the user's first text."""
    before: "Step | None" = None
    """The step whose answer this request continues; None: it begins a conversation."""
    new: Sequence[Json] = ()
    """The messages of this request that were neither in an earlier request nor an answer."""
    calls: int = attrs.field(init=False)
    """The number of answers in the conversation up to this step."""
    after: "list[Step]" = attrs.field(factory=list["Step"], init=False)

    def __attrs_post_init__(self) -> None:
        self.calls = (self.before.calls if self.before else 0) + bool(self.exchange.answer)

    @property
    def path(self) -> "list[Step]":
        """The steps of the conversation up to this one."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]


def conversations(exchanges: Iterable[Exchange]) -> tuple[list[Step], list[Step]]:
    """The last steps of all conversations, those with the most answers first; and asides: requests whose answer no
    later request continues, in a conversation that goes on."""
    lineage = _Lineage()
    for exchange in exchanges:
        lineage.add(exchange)
    kept: list[Step] = []
    asides: list[Step] = []
    for siblings in lineage.siblings.values():
        has_grown = any(step.after for step in siblings)
        for step in siblings:
            if not step.after:
                is_last = step is siblings[-1] and not has_grown
                (kept if is_last else asides).append(step)
    return sorted(kept, key=lambda step: -step.calls), asides


_Table: TypeAlias = dict[Any, list[Step]]


@attrs.define
class _Lineage:
    siblings: _Table = attrs.field(factory=dict[Any, list[Step]], init=False)
    """Steps by the step that they continue; for those that begin a conversation, by root and number of messages."""
    _answers: _Table = attrs.field(factory=dict[Any, list[Step]], init=False)
    """Steps by their root and a part of their answer."""
    _lengths: _Table = attrs.field(factory=dict[Any, list[Step]], init=False)
    """Steps by their root and the number of their messages."""
    _ids: dict[str, Step] = attrs.field(factory=dict[str, Step], init=False)

    def add(self, exchange: Exchange) -> None:
        """Add the next request of the log."""
        root = _root(exchange)
        before, known = self._before(exchange, root)
        step = Step(exchange, root, before, exchange.talk[known:])
        size = root, len(exchange.talk)
        self.siblings.setdefault(before or size, []).append(step)
        self._lengths.setdefault(size, []).append(step)
        if before:
            before.after.append(step)
        if answer := exchange.answer:
            self._ids[answer.id] = step
            for key in _keys(answer.message.content):
                for whose in (root, ""):
                    self._answers.setdefault((whose, *key), []).append(step)

    def _before(self, exchange: Exchange, root: str) -> tuple[Step | None, int]:
        """The step whose answer a request continues, and how many of its messages were known then; (None, 0) if
        none."""
        talk, name = exchange.talk, exchange.format
        earlier = string(exchange.body.get("previous_response_id"))
        if earlier and earlier in self._ids:
            return self._ids[earlier], 0
        for place in reversed(range(len(talk))):
            said = _said(talk[place], name)
            if said is None:
                continue
            first = place
            while first and _said(talk[first - 1], name) is not None:
                first -= 1
            if step := self._answered(said, root, first):
                return step, place + 1
            if step := self._edited(exchange, root, first):
                return step, place + 1 if step.exchange.answer else first
        return None, 0

    def _answered(self, said: Sequence[Content], root: str, asked: int) -> Step | None:
        """The latest step with this answer, if possible one whose request had `asked` messages."""
        keys = list(_keys(said))
        calls = [key for key in keys if key[0] == "call"]
        for key in calls or keys:
            found = self._answers.get((root, *key), [])
            if calls and not found:  # a shortened history has the same calls
                found = self._answers.get(("", *key), [])
            latest = found[-_COMPARED:]
            exact = [step for step in latest if len(step.exchange.talk) == asked]
            if latest:
                return (exact or latest)[-1]
        return None

    def _edited(self, exchange: Exchange, root: str, asked: int) -> Step | None:
        """The latest step with the same messages before its answer: the client edited the answer, or the log lacks
        it."""
        if not asked:
            return None
        tail = _heard(exchange.talk[asked - 1], exchange.format)
        found = self._lengths.get((root, asked), [])[-_COMPARED:]
        same = (
            s for s in reversed(found) if _heard(s.exchange.talk[-1], s.exchange.format) == tail
        )
        return next(same, None)


def _root(exchange: Exchange) -> str:
    """A hash of the user's first text, because texts may be long and requests many."""
    for item in exchange.talk:
        for message in messages_in(item, exchange.format):
            if message.role == "user":
                return sha256(text_of_parts(parts_in(message.content)).encode()).hexdigest()
    return ""


def _said(item: Json, name: Format) -> Sequence[Content] | None:
    """The content of a model's message; None if the model did not write it."""
    messages = [m for m in messages_in(item, name) if m.role == "assistant"]
    return [c for message in messages for c in message.content] if messages else None


def _heard(item: Json, name: Format) -> list[str]:
    """The text of a message of the user or of tools, and the call ids of its results."""
    found = [c for message in messages_in(item, name) for c in message.content]
    ids = [content.call_id for content in found if isinstance(content, Result)]
    return [text_of_parts(parts_in(found)), *ids]


def _keys(content: Iterable[Content]) -> Iterator[_Key]:
    for said in content:
        match said:
            case Call():
                asked = msgspec.json.encode(said.input, order="deterministic").decode()
                yield "call", said.call_id, said.name, asked
            case Said(text=text):
                yield "text", text.strip()
            case _:
                pass
