"""Thinking blocks: whole and verbatim, or not at all.

Rules of the provider meet here, as far as it has them (`Limits.thinking`):

* `whole`: within the current tool loop, thinking comes back complete or the whole loop's goes;
* `leads`: it has to lead the message whose calls are answered, so it stays, and cuts respect it;
* `bound`: a signature binds it to everything before it, so behind a rewrite it is refused and goes;
  once gone it never comes back, hence an event.

What was sent is noted as a chain of hashes:

    system, tools -> content -> content -> ... -> the hash of a request

Every content block is a link, whatever message it stands in; cache marks are no content.  A request
notes the end of its chain in the log.  As long as the chain in front of a response still ends in the
hash of the request that it answered, its thinking stands where it was thought; whatever happened in
between (a word while the request was in flight, a hide, a compaction, a file that came back, other
tools) cannot go unnoticed.
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
from render.view._group import Asked, Entry, Group, Place
from render.view._provider_blocks import Json
from render.view._view import Shown, View, slice_visible


def strip_unbound(view: View, context: Context) -> View:
    """Hide the thinking that the last rewrite, or other tools or another system, made unusable.

    What was thought behind such thinking was bound to it, so it goes too, until the rest holds.
    """
    if not (context.keep_thinking and context.limits.thinking):
        return view
    while unusable := dict.fromkeys(entry.block.id for entry in _unusable(view, context)):
        hidden = tuple(Hidden(block=block) for block in unusable)
        event = BlocksHidden(id=EventId(""), at=context.now, hidden=hidden, reason="unsigned")
        view = decide(view, event)
    return view


def _unusable(view: View, context: Context) -> Iterator[Entry]:
    """Thinking that the provider would refuse at its present place."""
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
    """The chain of hashes after each piece."""
    return shown.group_memo.chained("sent", pieces, _start(context.fixed), _after)


def misplaced(shown: Shown, pieces: Sequence[Piece], context: Context) -> Iterator[Entry]:
    """Thinking that is shown after other content than when it was generated."""
    ends = chain_ends(shown, pieces, context)
    starts = chain([_start(context.fixed)], ends)
    for before, piece in zip(starts, pieces, strict=False):
        found = partial(_misplaced, before, piece)
        yield from piece.group.memo(("misplaced", piece, before), found)


def _misplaced(before: bytes, piece: Piece) -> tuple[Entry, ...]:
    found: list[Entry] = []
    there = {spot.version for spot in piece.spots}
    said = piece.group.placed(Place.RESPONSE)
    for entry in said:
        asked = entry.asked
        if isinstance(entry.block, AssistantThinking) and asked and asked.sent:
            own = range(asked.begun, entry.version)
            missing = any(e.version in own and e.version not in there for e in said)
            if entry.version in there and (missing or _ends_at(before, piece, asked) != asked.sent):
                found.append(entry)
    return tuple(found)


def _ends_at(before: bytes, piece: Piece, asked: Asked) -> str:
    """The chain of hashes before a response."""
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
