"""Showing hidden blocks by their replacements; a hidden tool result stays a tool result."""

from typing import Final

import attrs
from msgspec.structs import replace

from blocks import (
    ArtifactId,
    AssistantThinking,
    Block,
    RangeSummary,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserAttachment,
    text_of,
)
from blocks import OpaqueBlock as Opaque
from render.view._group import Entry, Group, Place

_ADDRESS: Final[tuple[str, ...]] = ("id", "turn", "author", "response")
"""Fields of an unknown block that say where it belongs, without its content."""


def as_shown(group: Group) -> Group:
    """The group with its hidden blocks replaced; the group itself if nothing in it is hidden."""
    return group.memo("as shown", lambda: _replaced(group)) if group.is_hidden else group


def _replaced(group: Group) -> Group:
    gone = _gone(group)
    return attrs.evolve(group, entries=tuple(_entry(entry, gone) for entry in group.entries))


def _gone(group: Group) -> set[str]:
    """Calls that are not shown, by their id on the wire: neither the call nor its result has a replacement. If only one
    of the two has none, both stay, because a pair is complete or absent."""
    calls = {e.pair for e in group.placed(Place.RESPONSE) if e.pair and _is_nothing(e)}
    results = {e.pair: _is_nothing(e) for e in group.placed(Place.RESULT)}
    return {pair for pair in calls if results.get(pair, True)}


def _is_nothing(entry: Entry) -> bool:
    return entry.replacement == "" or entry.dropped is not None


def _entry(entry: Entry, gone: set[str]) -> Entry:
    text = _shown_text(entry)
    if text is None:
        return entry if entry.opened is None else replace(entry, block=entry.opened)
    if isinstance(entry.block, AssistantThinking):  # verbatim or absent
        return replace(entry, place=Place.SILENT)
    is_whole = entry.pair in gone or not isinstance(entry.block, ToolCall | ToolResult)
    if text and entry.dropped and is_whole:
        notice = SystemMessage(id=entry.block.id, turn=entry.block.turn, text=text)
        return replace(entry, block=notice, place=Place.USER, replacement=None)
    if not text and is_whole:
        return replace(entry, place=Place.SILENT)
    return replace(entry, block=stand_in(entry.block, text), replacement=None)


def _shown_text(entry: Entry) -> str | None:
    """The replacement, between the ends of the content that are shown with it."""
    head, tail = entry.ends
    if entry.opened is None or not (head or tail):
        return entry.replacement
    text = text_of(entry.opened)
    return f"{text[:head]}{entry.replacement or ''}{text[len(text) - tail :]}"


def stand_in(block: Block, text: str) -> Block:
    """A block of the same kind with only `text` as content: a call keeps its name, a result its outcome, and a pair
    stays complete. Thinking is verbatim or absent."""
    match block:
        case ToolCall():
            return replace(block, input={"hidden": text}, provider={})
        case ToolResult():
            known = replace(block.envelope, key_fields={})
            parts = (TextPart(text=text),)
            return replace(block, parts=parts, envelope=known, artifact=ArtifactId(""))
        case UserAttachment():
            return replace(
                block, part=TextPart(text=text), name="hidden"
            )  # it may say what is hidden
        case AssistantThinking():
            return replace(block, provider={})
        case TurnHeader() | RangeSummary():
            return block  # never hidden
        case Opaque():
            kept = {name: block.fields[name] for name in _ADDRESS if name in block.fields}
            return Opaque(block.tag, {**kept, "text": text})
        case _:
            return _with_text(block, text)


def _with_text(block: Block, text: str) -> Block:
    if isinstance(block, Opaque):
        return block
    nothing: dict[str, object] = {"parts": (), "provider": {}}
    changes = {name: nothing[name] for name in nothing if name in block.__struct_fields__}
    return replace(block, text=text, **changes)
