"""What was sent, as a chain of hashes: on some models thinking is bound to all that precedes it.

    system, tools -> content -> content -> ... -> the hash of a request

Every content block is a link, whatever message it stands in; cache marks are no content.  A request
notes the end of its chain in the log.  As long as the chain in front of a response still ends in the
hash of the request that it answered, its thinking stands where it was thought; whatever happened in
between (a word while the request was in flight, a hide, a fold, a file that came back, other tools)
cannot go unnoticed.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, compress
from operator import attrgetter
from typing import TypeAlias

import msgspec

from blocks import AssistantThinking
from render.policy._context import Context
from render.policy._fixed import Fixed
from render.policy._provider import Piece
from render.stages._rehydrate import Returned
from render.view._group import Asked, Entry, Place
from render.view._provider_blocks import Json
from render.view._visible import Shown

_Link: TypeAlias = tuple[str, Json]
"""A role and a content block."""
LENGTH = 32
"""Characters of a hash that are noted."""


def sent_hash(
    shown: Shown, pieces: Sequence[Piece], returned: Iterable[Returned], context: Context
) -> str:
    """The hash of a request: the end of its chain."""
    ends = chain_ends(shown, pieces, context)
    texts = (("user", {"type": "text", "text": artifact.text}) for artifact in returned)
    return _linked(ends[-1] if ends else _start(context.fixed), texts).hex()[:LENGTH]


def chain_ends(shown: Shown, pieces: Sequence[Piece], context: Context) -> tuple[bytes, ...]:
    """Where the chain stands after each piece."""
    return shown.group_memo.chained("sent", pieces, _start(context.fixed), _after)


def misplaced(shown: Shown, pieces: Sequence[Piece], context: Context) -> Iterator[Entry]:
    """Thinking that is shown, and not behind what it was thought behind."""
    ends = chain_ends(shown, pieces, context)
    starts = chain([_start(context.fixed)], ends)
    for before, piece in zip(starts, pieces, strict=False):
        found = partial(_misplaced, before, piece)
        yield from piece.group.memo(("misplaced", before), found)


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
    """Where the chain stands in front of a response."""
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
