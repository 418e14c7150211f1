"""Cursor's transcripts: messages in Anthropic's format, without times and without ids of calls.

A result belongs to the first call that has no result yet.
"""

from collections import deque

import attrs

from blocks.formats import Call, Content, Json, Result, messages_in, obj, string
from persistence.sessions._builder import Builder
from persistence.sessions._messages import add_message
from persistence.sessions._session import Session
from persistence.sessions._source import Source
from persistence.sessions._times import seconds

NAME = "cursor"
_ROLES = frozenset({"user", "assistant"})


def looks(source: Source) -> bool:
    """Whether these are lines of a Cursor transcript."""
    return any(
        string(line.get("role")) in _ROLES and "content" in obj(line.get("message"))
        for _, line in source.head
    )


def read(source: Source) -> Session:
    """The session in `source`."""
    reader = _Reader(Builder(source, NAME))
    for number, line in source.records:
        reader.line(number, line)
    return reader.builder.build()


@attrs.define
class _Reader:
    builder: Builder
    _named: set[str] = attrs.field(factory=set[str], init=False)
    """Ids of calls that have one in the log."""
    _open: deque[str] = attrs.field(factory=deque[str], init=False)
    """The ids given here to calls without an id in the log, as long as they have no result; oldest first."""
    _calls: int = attrs.field(default=0, init=False)

    def line(self, number: int, line: Json) -> None:
        fields = {**obj(line.get("message")), "role": line.get("role")}
        at = seconds(line.get("timestamp"))
        for message in messages_in(fields, "anthropic"):
            content = tuple(self._named_content(c) for c in message.content)
            add_message(self.builder, attrs.evolve(message, content=content), number, at)

    def _named_content(self, content: Content) -> Content:
        if isinstance(content, Call):
            return self._call(content)
        if isinstance(content, Result) and content.call_id not in self._named and self._open:
            return attrs.evolve(content, call_id=self._open.popleft())
        return content

    def _call(self, call: Call) -> Call:
        if call.call_id:
            self._named.add(call.call_id)
            return call
        self._calls += 1
        self._open.append(f"call_{self._calls}")
        return attrs.evolve(call, call_id=self._open[-1])
