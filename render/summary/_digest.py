"""The digest: a computed record of what was folded.

It is merged with the previous digest, so it always covers everything that is no longer visible. Every list
is bounded; entries that are left out are still counted.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs
import msgspec

from blocks import (
    ArtifactPointer,
    Digest,
    DroppedSpan,
    Envelope,
    HiddenRecord,
    SearchRecord,
    ToolCall,
    ToolKind,
    ToolResult,
    ToolTally,
    text_of,
    tool_kind,
    tool_target,
)
from render.summary._commands import WENT_WELL, script_of, status_of
from render.summary._identifiers import one_line
from render.summary._text import SECTIONS, digest_sections, list_text
from render.view._group import Entry, Place

_T = TypeVar("_T")

LISTS: Final = {
    "files_read": 60,
    "searches": 15,
    "hidden": 20,
    "externalized": 40,
    "dropped": 20,
}
"""The most entries of each list."""
GIVING: Final = {"files_read": 0.5, "hidden": 4.0, "externalized": 2.0}
"""Factors on a list's size when choosing the list to shorten (1.0 if not named here). Content that can be
read back is shortened first, the names of files that were read last."""
LINE_MAX: Final = 160
SHRINKS_MAX: Final = 60
_PATH = re.compile(
    r"(?:^|[\s:\"'`(])((?:[\w.@~-]+)?(?:/[\w.@~-]+)+|[\w-]+\.[a-z]{1,4})(?=$|[\s:\"'`)])"
)


@attrs.define
class _Tally:
    """The new entries of the lists, while they are collected."""

    files_read: list[str] = attrs.field(factory=list[str])
    searches: list[SearchRecord] = attrs.field(factory=list[SearchRecord])
    hidden: list[HiddenRecord] = attrs.field(factory=list[HiddenRecord])
    externalized: list[ArtifactPointer] = attrs.field(factory=list[ArtifactPointer])
    dropped: list[DroppedSpan] = attrs.field(factory=list[DroppedSpan])
    tools: dict[str, tuple[int, int]] = attrs.field(factory=dict[str, tuple[int, int]])


def build_digest(previous: Digest, folded: Sequence[Entry]) -> Digest:
    """The digest of everything folded so far; its index is built separately."""
    known = {t.tool: (t.success, t.failure) for t in previous.tools}
    tally = _Tally(tools=known)
    results = {e.pair: e for e in folded if e.place is Place.RESULT}
    calls = {e.pair: e.block for e in folded if isinstance(e.block, ToolCall)}
    for entry in folded:
        if isinstance(entry.block, ToolCall):
            _call(entry.block, results.get(entry.pair), tally)
        _hidden(entry, calls, tally)
    return _merge(previous, tally, folded)


def _hidden(entry: Entry, calls: Mapping[str, ToolCall], tally: _Tally) -> None:
    """Record what was shown instead of a block before it was folded."""
    if entry.artifact:
        call = calls.get(entry.pair)
        known = entry.block.envelope if isinstance(entry.block, ToolResult) else None
        about = _line(f"{call.name} {tool_target(call.input, known)}") if call else ""
        pointer = ArtifactPointer(artifact=entry.artifact, path=entry.path, about=about)
        tally.externalized.append(pointer)
    elif entry.dropped:
        tally.dropped.append(entry.dropped)
    elif entry.replacement:
        shown = HiddenRecord(path=entry.name, replacement=_line(entry.replacement))
        tally.hidden.append(shown)


def _call(call: ToolCall, answer: Entry | None, tally: _Tally) -> None:
    result = answer.block if answer and isinstance(answer.block, ToolResult) else None
    failed = result is not None and (result.is_error or result.envelope.outcome == "failure")
    success, failure = tally.tools.get(call.name, (0, 0))
    tally.tools[call.name] = (success + (not failed), failure + failed)
    known = result.envelope if result else Envelope()
    kind, target = tool_kind(call.name, call.input, known), _line(tool_target(call.input, known))
    if kind == "command" and target:
        _ran(call, result, known, tally)
    elif target:
        _looked(kind, target, result, tally)


def _ran(call: ToolCall, result: ToolResult | None, known: Envelope, tally: _Tally) -> None:
    """Record the file that a command showed."""
    if result and status_of(result) in WENT_WELL and (shown := script_of(call, known).shown):
        tally.files_read.append(_line(shown.file))


def _looked(kind: ToolKind, target: str, result: ToolResult | None, tally: _Tally) -> None:
    match kind:
        case "read":
            tally.files_read.append(target)
        case "search" | "web":
            tally.searches.append(SearchRecord(query=target, paths=_paths(result)))
        case _:
            pass


def _paths(result: ToolResult | None) -> tuple[str, ...]:
    if result is None:
        return ()
    found = dict.fromkeys(_PATH.findall(text_of(result)[:4000]))
    return tuple(found)[:5]


def _line(text: str) -> str:
    return one_line(text, LINE_MAX)


def _merge(previous: Digest, tally: _Tally, folded: Sequence[Entry]) -> Digest:
    forgotten = dict(previous.forgotten)
    lists: dict[str, tuple[Any, ...]] = {}
    for name, length in LISTS.items():
        old: tuple[Any, ...] = getattr(previous, name)
        new: list[Any] = getattr(tally, name)
        merged = _newest([*old, *new])
        if len(merged) > length:
            forgotten[name] = forgotten.get(name, 0) + len(merged) - length
        lists[name] = tuple(merged[-length:])
    tools = (ToolTally(tool=t, success=s, failure=f) for t, (s, f) in sorted(tally.tools.items()))
    turns = {entry.block.turn for entry in folded}
    rounds = {entry.round for entry in folded if entry.round}
    return msgspec.structs.replace(
        previous,
        blocks=previous.blocks + len(folded),
        turns=previous.turns + len(turns),
        rounds=previous.rounds + len(rounds),
        compactions=previous.compactions + 1,
        tools=tuple(tools),
        forgotten=forgotten,
        **lists,
    )


def fit_digest(digest: Digest, tokens_max: int, count: Callable[[str], int]) -> Digest:
    """The digest with the newest list entries that fit into `tokens_max`, without its actions and excerpts."""
    sizes = {title: count(text) for title, text in digest_sections(digest)}
    for _ in range(SHRINKS_MAX):
        if sum(sizes.values()) <= tokens_max:
            break
        left = {n: sizes.get(title, 0) for n, title in SECTIONS.items() if getattr(digest, n)}
        if not left:
            break
        name = max(left, key=lambda name: left[name] * GIVING.get(name, 1.0))
        digest = _shrunk(digest, name)
        if SECTIONS[name] in sizes:
            sizes[SECTIONS[name]] = count(list_text(digest, name))
    return digest


def _shrunk(digest: Digest, name: str) -> Digest:
    """The digest without the oldest third of one list."""
    items: tuple[Any, ...] = getattr(digest, name)
    return _left(digest, name, items[len(items) // 3 + 1 :])


def _left(digest: Digest, name: str, left: tuple[Any, ...]) -> Digest:
    """The digest with only these entries in one list; the removed ones are counted as forgotten."""
    gone = len(getattr(digest, name)) - len(left)
    if not gone:
        return digest
    forgotten = {**digest.forgotten, name: digest.forgotten.get(name, 0) + gone}
    changes: dict[str, Any] = {name: left, "forgotten": forgotten}
    return msgspec.structs.replace(digest, **changes)


def _newest(items: Iterable[_T]) -> list[_T]:
    """Each item once, at its newest position."""
    return list(reversed(dict.fromkeys(reversed(list(items)))))
