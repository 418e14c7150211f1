"""A round in terms that providers share: calls, their results, other content, and the pieces of a request.

Repairs, each with a notice; the log keeps the original:

* a result without a call is not shown;
* a call without a result is answered "interrupted"; a result that arrives after such a request was sent
  is shown as text at its own position (changing the sent answer would rewrite the prefix);
* if the last content is the model's, a line of the user follows, because most models refuse such a request;
* empty and white-space text is not shown; an unreadable image is named.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, groupby
from operator import eq, itemgetter
from typing import Final

import attrs
import msgspec

from blocks import (
    Note,
    OpaqueBlock,
    Part,
    TextPart,
    ToolCall,
    ToolResult,
    clean_json,
    standing_of,
)
from render.policy._provider import Piece, Spot, TokenCounter
from render.providers._parts import CONTINUE, INTERRUPTED, NO_OUTPUT, role_of, user_parts
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

OTHERS: Final = frozenset({Place.USER, Place.LATE, Place.CARRIED})
"""Places of content other than responses and results."""


@attrs.frozen(kw_only=True)
class Sent:
    """One message, or input item, with the content that each block contributed."""

    item: Json
    by_model: bool
    contents: tuple[tuple[int, Json], ...]
    """The content with the versions of its blocks."""


@attrs.frozen(kw_only=True)
class Returned:
    """The answer to a call."""

    call: Entry
    version: int
    """Version of the block that answers; without an answer, version of the call."""
    parts: tuple[Part, ...]
    """At least one part."""
    failed: bool


@attrs.frozen(kw_only=True)
class Scale:
    """How the tokens of contents are counted."""

    tokens: Callable[[Json, TokenCounter], int]
    counter: TokenCounter
    envelope: int = 0
    """Tokens of a message in addition to its contents."""
    kind: Callable[[Json], str] = lambda content: str(content.get("type"))
    """The provider's type of a content."""
    said: str = ""
    """Prefix of the type for the model's contents, in APIs where these cannot carry a mark."""


def returned(group: Group, notices: list[str]) -> Iterator[Returned]:
    """The answer to each call, in the order of the calls."""
    results = {entry.pair: entry for entry in group.placed(Place.RESULT)}
    for call in group.placed(Place.RESPONSE):
        if not isinstance(call.block, ToolCall):
            continue
        found = results.get(call.pair)
        if found is None or not isinstance(found.block, ToolResult):
            notices.append(f"a call without a result is answered as interrupted: {call.path}")
            lost = (TextPart(text=INTERRUPTED),)
            yield Returned(call=call, version=call.version, parts=lost, failed=True)
        else:
            block = found.block
            said = _output(block.parts)
            yield Returned(call=call, version=found.version, parts=said, failed=block.is_error)


def _output(parts: Sequence[Part]) -> tuple[Part, ...]:
    kept = tuple(p for p in parts if not (isinstance(p, TextPart) and not p.text.strip()))
    return kept or (TextPart(text=NO_OUTPUT),)


@attrs.frozen
class Other:
    """What an entry shows besides the model's content and results."""

    version: int
    role: str
    """`user`, or the role of an operator's message."""
    parts: tuple[Part, ...]


def others(
    group: Group, notices: list[str], *, answered: bool, roles: Collection[str] = ()
) -> Iterator[Other]:
    """The group's other content, entry by entry, preceded by a filler line if nobody replied to the model.

    `answered` says whether there were calls, or the model said nothing; `roles` are those that the provider has for an
    operator's messages.
    """
    entries = [entry for entry in group.entries if entry.place in OTHERS]
    shown = [Other(e.version, role_of(e, roles), tuple(user_parts(e, notices))) for e in entries]
    early = any(
        other.parts and other.role == "user" and (not group.sealed or other.version <= group.sealed)
        for other in shown
    )
    if not answered and not early:
        newest = group.placed(Place.RESPONSE)[-1].version
        yield Other(newest, "user", (TextPart(text=CONTINUE),))
    yield from (other for other in shown if other.parts)
    orphans = group.placed(Place.ORPHAN)
    notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)


def by_role(
    contents: Mapping[str, Sequence[tuple[int, Json]]], model: str, field: str
) -> list[Sent]:
    """A message for each role that has contents, under `field`; `model` is the model's role."""
    return [
        Sent(
            item={"role": role, field: [content for _, content in own]},
            by_model=role == model,
            contents=tuple(own),
        )
        for role, own in contents.items()
        if own
    ]


def told(block: OpaqueBlock) -> str:
    """The text of a block that another provider wrote, for example of its own compaction."""
    content: object = (verbatim(block) or {}).get("content")
    return block.text or (content if isinstance(content, str) else "")


# Building pieces.


def piece_of(group: Group, sent: Sequence[Sent], scale: Scale, notices: Sequence[str]) -> Piece:
    """The piece for a group, with the tokens of each block."""
    try:
        digest = _digest(sent)
    except UnicodeEncodeError:  # not cleaned by a store
        sent = [_sendable(each) for each in sent]
        digest = _digest(sent)
    spots = tuple(spot for each in sent for spot in _spots(each, scale))
    notes = {e.version for e in group.entries if isinstance(e.block, Note)}
    standing = {e.version for e in group.entries if standing_of(e.source)}
    return Piece(
        contents=tuple(content for each in sent for _, content in each.contents),
        items=tuple(each.item for each in sent),
        spots=spots,
        tokens=sum(spot.tokens for spot in spots),
        pinned=sum(spot.tokens for spot in spots if spot.version in notes),
        standing=sum(spot.tokens for spot in spots if spot.version in standing),
        digest=digest,
        notices=tuple(notices),
    )


def _spots(sent: Sent, scale: Scale) -> Iterator[Spot]:
    role = "assistant" if sent.by_model else "user"
    envelope = scale.envelope
    for version, content in sent.contents:
        tokens = envelope + scale.tokens(content, scale.counter)
        kind = scale.said * sent.by_model + scale.kind(content)
        yield Spot(version=version, role=role, tokens=tokens, kind=kind)
        envelope = 0


def _digest(sent: Sequence[Sent]) -> bytes:
    return sha256(msgspec.json.encode([each.item for each in sent])).digest()


def _sendable(sent: Sent) -> Sent:
    """The message with text that JSON cannot hold replaced, as a store would do."""
    contents = tuple((version, clean_json(content)) for version, content in sent.contents)
    return attrs.evolve(sent, item=clean_json(sent.item), contents=contents)


# Assembling the conversation.


def assembled(
    pieces: Sequence[Piece],
    marks: Iterable[tuple[int, int]],
    mark: Callable[[Piece, frozenset[int]], Iterable[Json]],
) -> list[Json]:
    """The items of all pieces. For a piece with marks, the items that `mark` returns; equal marks give the
    same objects."""
    by_piece: dict[int, set[int]] = {}
    for index, spot in marks:
        by_piece.setdefault(index, set()).add(spot)
    parts = [piece.items for piece in pieces]
    for index, spots in by_piece.items():
        marked, at = pieces[index].marked, frozenset(spots)
        if at not in marked:
            marked[at] = tuple(mark(pieces[index], at))
        parts[index] = marked[at]
    return list(chain.from_iterable(parts))


def joined(messages: list[Json], as_one: Callable[[Sequence[Json]], Json]) -> list[Json]:
    """The messages with adjacent ones of the same role joined; other messages stay the same objects."""
    roles = [message["role"] for message in messages]
    if not any(map(eq, roles, roles[1:])):
        return messages
    runs = (list(run) for _, run in groupby(messages, itemgetter("role")))
    return [run[0] if len(run) == 1 else as_one(run) for run in runs]


def behind(
    messages: list[Json], said: Json, as_one: Callable[[Sequence[Json]], Json]
) -> list[Json]:
    """The messages with a user message at the end, after the last mark, so it is never cached."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, said]
    return [*messages[:-1], as_one([messages[-1], said])]
