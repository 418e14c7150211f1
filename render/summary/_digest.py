"""What a page counts and points to: how much was folded, and what can be read back elsewhere.

It is merged with that of the page before, so it always covers everything that is no longer visible. Lists are bounded;
entries that are left out are counted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from blocks import ArtifactPointer, Digest, ToolCall, ToolResult, tool_kind, tool_target
from render.summary._actions import main_argument
from render.summary._commands import script_of
from render.summary._identifiers import one_line
from render.summary._text import set_aside
from render.view._group import Entry

LISTS: Final = {"externalized": 8, "dropped": 20}
"""The most entries of each list."""
ABOUT_CHARACTERS: Final = 160


def counted(previous: Digest, folded: Sequence[Entry]) -> Digest:
    """The counts and lists of everything folded so far."""
    calls = {e.pair: e.block for e in folded if isinstance(e.block, ToolCall)}
    new: Mapping[str, list[Any]] = {
        "externalized": [p for e in folded if e.artifact and (p := _pointer(e, calls.get(e.pair)))],
        "dropped": [e.dropped for e in folded if e.dropped and not e.artifact],
    }
    digest = msgspec.structs.replace(
        previous,
        blocks=previous.blocks + len(folded),
        turns=previous.turns + len({entry.block.turn for entry in folded}),
        rounds=previous.rounds + len({entry.round for entry in folded if entry.round}),
        compactions=previous.compactions + 1,
    )
    for name, added in new.items():
        listed = (*getattr(previous, name), *added)
        newest = tuple(reversed(dict.fromkeys(reversed(listed))))
        digest = _with(digest, name, newest[-LISTS[name] :], len(newest))
    return digest


def fitted(digest: Digest, tokens_max: int, count: Callable[[str], int]) -> Digest:
    """The digest with the newest entries of its lists that fit into so many tokens."""
    for name in LISTS:
        while (items := getattr(digest, name)) and count(_told(digest)) > tokens_max:
            digest = _with(digest, name, items[len(items) // 3 + 1 :], len(items))
    return digest


def _told(digest: Digest) -> str:
    return "\n".join(text for _, text in set_aside(digest))


def _pointer(entry: Entry, call: ToolCall | None) -> ArtifactPointer | None:
    """None for a call that only showed parts of files, which can be read again, or does not say of what its result is."""
    known = entry.block.envelope if isinstance(entry.block, ToolResult) else None
    target = call and (tool_target(call.input, known) or main_argument(call.input))
    kind = tool_kind(call.name, call.input, known) if call else "other"
    if call and (not target or kind == "read" or script_of(call, known).parts):
        return None
    about = one_line(f"{call.name} {target}", ABOUT_CHARACTERS) if call else ""
    return ArtifactPointer(artifact=entry.artifact, path=entry.path, about=about)


def _with(digest: Digest, name: str, items: tuple[Any, ...], known: int) -> Digest:
    """The digest with these entries in one list; the others of the `known` ones are counted."""
    forgotten = dict(digest.forgotten)
    if gone := known - len(items):
        forgotten[name] = forgotten.get(name, 0) + gone
    changes: dict[str, Any] = {name: items, "forgotten": forgotten}
    return msgspec.structs.replace(digest, **changes)
