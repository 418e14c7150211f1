"""Drift: whether the source of a replayable result may have changed since it was read.

A result is cleared only if the same content can be read again. The evidence, in this order:

    a probe                 looked at the source just now: equal marks mean unchanged
    a later, equal read     of the same target by the same tool, and no write to the target since
    none                    the source counts as changed

A write is a call of a tool that declares that it writes, or whose name implies it (`tool_kind`), including
failed and open calls. Writes by shell commands are unknown and ignored; only a probe detects them.
"""

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Final, NamedTuple

import attrs
import msgspec

from blocks import (
    CallId,
    Determinism,
    Envelope,
    ToolCall,
    ToolResult,
    tool_kind,
    tool_target,
    written_paths,
)
from render.view._group import Entry, Place

_STILL_OPEN: Final = 1 << 62
"""The version of a write that has no result yet: it may happen at any time."""

_ENDS_MAX: Final = 40
"""The most trailing path components that are compared."""


class _Read(NamedTuple):
    asked: int
    """Version of the call. Whatever returned before it had already taken effect."""
    mark: Determinism


@attrs.define
class _Writes:
    """When which files were written, as versions. Relative and absolute names of one file match."""

    _anywhere: int = 0
    """Version of the newest write without a path."""
    _whole: dict[str, int] = attrs.field(factory=dict[str, int])
    """Version of the newest write, by the path that the write named."""
    _ends: dict[str, int] = attrs.field(factory=dict[str, int])
    """Version of the newest write, by every ending of that path: `/srv/a.py`, `srv/a.py`, `a.py`."""

    def add(self, paths: Sequence[str], version: int) -> None:
        if not paths:
            self._anywhere = max(self._anywhere, version)
        for path in map(_normal, paths):
            self._whole[path] = max(self._whole.get(path, 0), version)
            for end in _ends(path):
                self._ends[end] = max(self._ends.get(end, 0), version)

    def last(self, path: str) -> int:
        """Version of the newest write to a file that may be this one; 0: never."""
        path = _normal(path)
        longer = self._ends.get(path, 0)
        shorter = max(self._whole.get(end, 0) for end in _ends(path))
        return max(self._anywhere, longer, shorter)


@attrs.frozen
class Drift:
    """What the entries of a view and the probes say about the sources of results; built once per view."""

    entries: Sequence[Entry] = attrs.field(repr=False)
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """The marks that probes found, by the call whose source was probed."""
    _calls: dict[str, ToolCall] = attrs.field(factory=dict[str, ToolCall], init=False, repr=False)
    """Calls by wire id."""
    _same: dict[tuple[str, bytes], _Read] = attrs.field(
        factory=dict[tuple[str, bytes], _Read], init=False, repr=False
    )
    """The newest read, by tool and arguments."""
    _alike: dict[tuple[str, str, str], int] = attrs.field(
        factory=dict[tuple[str, str, str], int], init=False, repr=False
    )
    """Version of the newest read, by tool, target and content hash."""
    _writes: _Writes = attrs.field(factory=_Writes, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        answers = {e.pair: e for e in self.entries if e.place is Place.RESULT}
        for entry in self.entries:
            if isinstance(entry.block, ToolCall) and entry.pair:
                self._calls[entry.pair] = entry.block
                self._learn(entry.version, entry.block, answers.get(entry.pair))

    def _learn(self, asked: int, call: ToolCall, answer: Entry | None) -> None:
        result = answer.block if answer and isinstance(answer.block, ToolResult) else None
        known = result.envelope if result else None
        if tool_kind(call.name, call.input, known) == "write":
            paths = written_paths(call.name, call.input, known)
            self._writes.add(paths, answer.version if answer else _STILL_OPEN)
        elif known and known.determinism != Determinism():
            mark, target = known.determinism, tool_target(call.input, known)
            self._same[call.name, _arguments(call)] = _Read(asked, mark)
            self._alike[call.name, target, mark.content_hash] = asked

    def has_changed(self, entry: Entry) -> bool:
        """Whether the source of this result may have changed since."""
        call, result = self._calls.get(entry.pair), entry.block
        if not isinstance(result, ToolResult) or entry.place is not Place.RESULT or call is None:
            return True
        then = result.envelope.determinism
        now = self.current.get(result.call_id)
        if now is not None:
            return then.has_changed(now)
        return not self._was_seen_again(entry.version, call, result.envelope)

    def _was_seen_again(self, version: int, call: ToolCall, known: Envelope) -> bool:
        seen, target, then = 0, tool_target(call.input, known), known.determinism
        newest = self._same.get((call.name, _arguments(call)))
        if newest and newest.asked > version:
            if then.has_changed(newest.mark):
                return False
            seen = newest.asked
        if target and then.content_hash:
            seen = max(seen, self._alike.get((call.name, target, then.content_hash), 0))
        return seen > version and seen > self._writes.last(target)


def _normal(path: str) -> str:
    return normpath(" ".join(path.split()).replace("\\", "/"))


def _ends(path: str) -> Iterator[str]:
    """The path and its endings, longest first: `a/b/c`, `b/c`, `c`."""
    yield path
    names = path.split("/")
    for start in range(max(1, len(names) - _ENDS_MAX), len(names)):
        yield "/".join(names[start:])


def _arguments(call: ToolCall) -> bytes:
    return msgspec.json.encode(call.input, order="sorted")
