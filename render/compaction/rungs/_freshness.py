"""Drift: whether the source of a replayable result may have changed since it was read.

A result is only given up when it can be had again as it was.  Who can say so:

    a probe                 looked at the source just now: equal marks are unchanged
    a later, equal read     of the same target by the same tool, and no write to it since
    nobody                  then it counts as changed

A write is a call of a tool that declared that it writes, or whose name tells it (`tool_kind`), failed
ones and open ones included.  What a shell command may have written is not known, and ignored; a probe sees it.
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
"""In place of a version: a write without a result may happen at any time."""

_ENDS_MAX: Final = 40
"""Folders from the end of a path that are looked at."""


class _Read(NamedTuple):
    asked: int
    """Version of the call: what the source was after everything that had returned by then."""
    mark: Determinism


@attrs.define
class _Writes:
    """Which files were written, and when; relative and absolute names of one file meet."""

    _anywhere: int = 0
    """When a write did not say where."""
    _whole: dict[str, int] = attrs.field(factory=dict[str, int])
    """By the name that the write gave."""
    _ends: dict[str, int] = attrs.field(factory=dict[str, int])
    """By every end of that name: `/srv/a.py`, `srv/a.py`, `a.py`."""

    def add(self, paths: Sequence[str], version: int) -> None:
        if not paths:
            self._anywhere = max(self._anywhere, version)
        for path in map(_normal, paths):
            self._whole[path] = max(self._whole.get(path, 0), version)
            for end in _ends(path):
                self._ends[end] = max(self._ends.get(end, 0), version)

    def last(self, path: str) -> int:
        """When a file that may be this one was last written; 0: never."""
        path = _normal(path)
        longer = self._ends.get(path, 0)
        shorter = max(self._whole.get(end, 0) for end in _ends(path))
        return max(self._anywhere, longer, shorter)


@attrs.frozen
class Drift:
    """What the entries of a view, and the probes, know about the sources; built once for a view."""

    entries: Sequence[Entry] = attrs.field(repr=False)
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """What probes have found, by the call whose source they looked at."""
    _calls: dict[str, ToolCall] = attrs.field(factory=dict[str, ToolCall], init=False, repr=False)
    """By wire id."""
    _same: dict[tuple[str, bytes], _Read] = attrs.field(
        factory=dict[tuple[str, bytes], _Read], init=False, repr=False
    )
    """The newest read with these arguments."""
    _alike: dict[tuple[str, str, str], int] = attrs.field(
        factory=dict[tuple[str, str, str], int], init=False, repr=False
    )
    """When a tool last found this content hash at this target."""
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
        """Whether the source of this result may be another one now than it was."""
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
    """`a/b/c`, `b/c`, `c`."""
    yield path
    names = path.split("/")
    for start in range(max(1, len(names) - _ENDS_MAX), len(names)):
        yield "/".join(names[start:])


def _arguments(call: ToolCall) -> bytes:
    return msgspec.json.encode(call.input, order="sorted")
