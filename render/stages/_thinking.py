"""Thinking blocks: sent whole and verbatim, or not at all.

Providers have different rules for them (`Limits.thinking`):

* `whole`: within the current tool loop, thinking is sent completely, or that of the whole loop is left out;
* `leads`: thinking must come first in the message whose calls are answered, so it stays, and cuts respect
  it;
* `bound`: a signature binds thinking to everything before it, so thinking after a rewrite is refused and
  removed.

Removed thinking never comes back, so its removal is recorded as an event.

The content of a request is recorded as a chain of hashes:

    system, tools -> content -> content -> ... -> the hash of a request

Every content block is a link, whichever message contains it; cache marks are not content. The log records
the end of the chain of each request. If the chain before a response still ends in the hash of the request
that it answered, its thinking is still in its original place. Any change in between is detected: a user
text during the request, a hide, a compaction, a returned artifact, other tools.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, compress
from operator import attrgetter
from typing import TypeAlias

import msgspec

from blocks import AssistantThinking, BlocksHidden, EventId, Hidden
from render.policy._context import Context, Fixed
from render.policy._provider import Piece
from render.stages._budget import prefix_of
from render.stages._rehydrate import Returned
from render.view._fold import decide
from render.view._group import Asked, Entry, Group, Place, as_shown
from render.view._provider_blocks import Json
from render.view._view import Shown, View, slice_visible


def strip_unbound(view: View, context: Context) -> View:
    """Hide the thinking that a rewrite, or changed tools or system prompt, has made unusable.

    Later thinking was bound to it and becomes unusable, too, so this is repeated until the rest is valid.
    """
    if not (context.keep_thinking and context.limits.thinking):
        return view
    while unusable := dict.fromkeys(entry.block.id for entry in _unusable(view, context)):
        hidden = tuple(Hidden(block=block) for block in unusable)
        event = BlocksHidden(id=EventId(""), at=context.now, hidden=hidden, reason="unsigned")
        view = decide(view, event)
    return view


def _unusable(view: View, context: Context) -> Iterator[Entry]:
    """Thinking that the provider would refuse at its current place."""
    rules = context.limits.thinking
    if "bound" in rules:
        shown = slice_visible(view)
        yield from misplaced(shown, context.encoder.pieces(shown), context)
    if "bound" in rules or view.rewritten:
        yield from _behind_rewrite(view, context)


def _behind_rewrite(view: View, context: Context) -> Iterator[Entry]:
    """Thinking after a rewrite, if it is bound; and thinking of a tool loop that the cut split."""
    rules = context.limits.thinking
    is_split = view.compaction is not None and "whole" in rules and "leads" not in rules
    split = view.compaction.event.summary.split_turn_id if is_split and view.compaction else None
    cut_at = view.compaction.version if view.compaction else 0
    elsewhere = _is_elsewhere(view, context)
    for entries in view.group_memo.each("thinking", view.groups, _thinking):
        for entry in entries:
            unbound = elsewhere or entry.unbound or entry.version < cut_at
            halved = entry.version < cut_at and entry.block.turn == split
            if (unbound and "bound" in rules) or halved:
                yield entry


def _is_elsewhere(view: View, context: Context) -> bool:
    """Whether system prompt or tools have changed since the model thought."""
    before = view.state.prefix_hash
    return bool(before) and before != prefix_of(context).digest


def _thinking(group: Group) -> tuple[Entry, ...]:
    """The thinking of a group that is still shown."""
    return tuple(
        entry
        for entry in group.entries
        if isinstance(entry.block, AssistantThinking) and entry.replacement is None
    )


_Link: TypeAlias = tuple[str, Json]
"""A content block with its role."""
LENGTH = 32
"""Length of a stored hash."""


def sent_hash(
    shown: Shown, pieces: Sequence[Piece], returned: Iterable[Returned], context: Context
) -> str:
    """The hash of a request: the end of its chain."""
    ends = chain_ends(shown, pieces, context)
    texts = (("user", {"type": "text", "text": artifact.text}) for artifact in returned)
    return _linked(ends[-1] if ends else _start(context.fixed), texts).hex()[:LENGTH]


def chain_ends(shown: Shown, pieces: Sequence[Piece], context: Context) -> tuple[bytes, ...]:
    """The end of the chain of hashes after each piece."""
    return shown.group_memo.chained("sent", pieces, _start(context.fixed), _after)


def misplaced(shown: Shown, pieces: Sequence[Piece], context: Context) -> Iterator[Entry]:
    """Thinking that is shown after other content than when it was generated."""
    ends = chain_ends(shown, pieces, context)
    starts = chain([_start(context.fixed)], ends)
    for before, group, piece in zip(starts, shown.groups, pieces, strict=False):
        found = partial(_misplaced, before, group, piece)
        yield from group.memo(("misplaced", piece, before), found)


def _misplaced(before: bytes, group: Group, piece: Piece) -> tuple[Entry, ...]:
    found: list[Entry] = []
    there = {spot.version for spot in piece.spots}
    said = as_shown(group).placed(Place.RESPONSE)
    for entry in said:
        asked = entry.asked
        if isinstance(entry.block, AssistantThinking) and asked and asked.sent:
            own = range(asked.begun, entry.version)
            missing = any(e.version in own and e.version not in there for e in said)
            if entry.version in there and (missing or _ends_at(before, piece, asked) != asked.sent):
                found.append(entry)
    return tuple(found)


def _ends_at(before: bytes, piece: Piece, asked: Asked) -> str:
    """The end of the chain of hashes before a response."""
    said = (spot.role == "assistant" and spot.version < asked.begun for spot in piece.spots)
    return _linked(before, compress(_links(piece), said)).hex()[:LENGTH]


def _after(before: bytes, piece: Piece) -> bytes:
    return _linked(before, _links(piece))


def _links(piece: Piece) -> Iterator[_Link]:
    return zip(map(attrgetter("role"), piece.spots), piece.contents, strict=True)


def _linked(before: bytes, links: Iterable[_Link]) -> bytes:
    for link in links:
        before = sha256(before + msgspec.json.encode(link)).digest()
    return before


def _start(fixed: Fixed) -> bytes:
    return fixed.memo(
        "start", lambda: sha256(msgspec.json.encode([fixed.system, fixed.tools])).digest()
    )
