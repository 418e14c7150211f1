"""Turning blocks into entries: their place in the group, the head of a compaction, hidden blocks."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs
from msgspec.structs import replace

from blocks import (
    AssistantThinking,
    Block,
    BlockId,
    Carried,
    FoldState,
    Hidden,
    HideReason,
    Note,
    OpaqueBlock,
    Plan,
    RangeCompacted,
    ToolResult,
    TurnHeader,
    path_at,
    path_of,
    standing_of,
)
from render.view._group import NO_ARTIFACT, Entry, Group, Place
from render.view._provider_blocks import verbatim
from render.view._replace import stand_in

LADDER: Final[frozenset[HideReason]] = frozenset({"externalized", "cleared", "dropped"})
"""The reasons with which rungs of a compaction hide blocks."""


@attrs.frozen
class Mask:
    """The text that is shown instead of a block, and the reason."""

    hidden: Hidden
    reason: HideReason


Replacements: TypeAlias = Mapping[BlockId, Mask | None]
"""The mask by block id; None: the block itself is shown."""


def place_of(block: Block) -> Place:
    """The place of a block in its group.

    Notes and plans are by the assistant, but are shown in the user's message. As assistant text they would
    separate a result from its answer, and the model would imitate them.
    """
    match block:
        case TurnHeader():
            return Place.SILENT
        case ToolResult():
            return Place.RESULT
        case Note() | Plan():
            return Place.USER
        case OpaqueBlock():
            if not block.text and verbatim(block) is None:
                return Place.SILENT
            return Place.RESPONSE if block.author == "assistant" else Place.USER
        case _:
            return Place.RESPONSE if block.author == "assistant" else Place.USER


def head_of(event: RangeCompacted, version: int) -> Group:
    """The head group of a compaction: standing instructions, which stay where they were, its summary, and what else
    it carried."""
    carried = [_carried_entry(item, event.at) for item in event.carried]
    standing = [entry for entry in carried if standing_of(entry.source)]
    others = [entry for entry in carried if not standing_of(entry.source)]
    return Group(entries=(*standing, summary_entry(event, version), *others))


def _carried_entry(item: Carried, at: float) -> Entry:
    entry = Entry(
        version=item.version,
        at=at,
        block=item.block,
        path=_named(item.block, item.ordinal, item.version),
        place=Place.CARRIED,
        replacement=item.clipped or None,
        state=FoldState(),
    )
    hidden = Hidden(block=item.block.id, replacement=item.clipped)
    return _masked(entry, Mask(hidden, "requested")) if item.withheld else entry


def _named(block: Block, ordinal: int, version: int) -> str:
    return path_of(block, ordinal) if ordinal else path_at(block, version)


def summary_entry(event: RangeCompacted, version: int) -> Entry:
    """The summary as an entry, before all other versions."""
    return Entry(
        version=0,
        at=event.at,
        block=event.summary,
        path=_named(event.summary, event.ordinal, version),
        place=Place.USER,
        state=FoldState(),
    )


def rehide(group: Group, replacements: Replacements) -> Group:
    """The group with these blocks hidden, or shown if the mask is None; the same object if nothing changes."""
    ids = group.memo("ids", lambda: frozenset(entry.block.id for entry in group.entries))
    if ids.isdisjoint(replacements):
        return group
    return rehide_at(group, range(len(group.entries)), replacements)


def rehide_at(group: Group, places: Iterable[int], replacements: Replacements) -> Group:
    """As `rehide`, for known indices of its entries."""
    entries = list(group.entries)
    for place in places:
        entries[place] = _rehide_entry(entries[place], replacements)
    if all(new is old for new, old in zip(entries, group.entries, strict=True)):
        return group
    return attrs.evolve(group, entries=tuple(entries))


def _rehide_entry(entry: Entry, replacements: Replacements) -> Entry:
    if entry.block.id not in replacements:
        return entry
    mask = replacements[entry.block.id]
    new = _masked(entry, mask) if mask is not None else _unmasked(entry)
    return entry if _mask_of(new) == _mask_of(entry) else new


def _mask_of(entry: Entry) -> tuple[object, ...]:
    shown = (entry.block, entry.original, entry.replacement, entry.ends)
    return *shown, entry.hidden_as, entry.artifact, entry.dropped


def _unmasked(entry: Entry) -> Entry:
    return replace(
        entry,
        block=entry.source,
        original=None,
        replacement=None,
        hidden_as=None,
        artifact=NO_ARTIFACT,
        dropped=None,
        ends=(0, 0),
    )


def _masked(entry: Entry, mask: Mask) -> Entry:
    """The entry with its replacement.

    A block hidden on request leaves the view completely, even if a later event also hides it, so stages can
    quote only its replacement.
    """
    text, is_requested = mask.hidden.replacement, mask.reason == "requested"
    return replace(
        entry,
        block=stand_in(entry.source, text) if is_requested else entry.block,
        original=entry.source if is_requested else entry.original,
        replacement=text,
        hidden_as=mask.reason,
        artifact=NO_ARTIFACT if is_requested else mask.hidden.artifact,
        dropped=mask.hidden.dropped,
        ends=(0, 0) if is_requested else (mask.hidden.head, mask.hidden.tail),
    )


def unbind(group: Group, first: int) -> Group:
    """The group after a change of how the block of version `first` is shown, which later thinking does not match."""
    if not any(_is_behind(entry, first) for entry in group.entries):
        return group
    entries = (
        replace(entry, unbound=True) if _is_behind(entry, first) else entry
        for entry in group.entries
    )
    return attrs.evolve(group, entries=tuple(entries))


def _is_behind(entry: Entry, first: int) -> bool:
    is_thinking = isinstance(entry.block, AssistantThinking)
    return is_thinking and entry.version > first and not entry.unbound
