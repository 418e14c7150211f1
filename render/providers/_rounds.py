"""A round in the words that providers share: calls and what answers them, what else came, the piece of a request
that it all becomes, and the conversation that pieces are put together as.

Repairs, each with a notice; the log keeps the original:

* a result without a call is not shown;
* a call without a result is answered "interrupted"; a result that comes after such a request was sent
  is shown as text, where it arrived (changing the sent answer would rewrite the prefix);
* an answer that nobody replied to is followed by a line of the user's: most models refuse a request that ends
  with their own words;
* text that is empty or white space is not shown; an image that cannot be read is named.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, groupby
from operator import attrgetter, eq, itemgetter
from typing import Final

import attrs
import msgspec

from blocks import Note, OpaqueBlock, Part, TextPart, ToolCall, ToolResult, clean_json
from render.policy._provider import Piece, Spot, TokenCounter
from render.providers._heard import heard
from render.providers._names import CONTINUE, INTERRUPTED, NO_OUTPUT
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

OTHERS: Final = frozenset({Place.USER, Place.LATE, Place.CARRIED})
"""Where what came besides results stands."""
_ITEMS: Final = attrgetter("items")
_ROLE: Final = itemgetter("role")


@attrs.frozen(kw_only=True)
class Sent:
    """One message, or item of input, and the content in it that each block became."""

    item: Json
    by_model: bool
    contents: tuple[tuple[int, Json], ...]
    """With the versions of the blocks."""


@attrs.frozen(kw_only=True)
class Returned:
    """What answers a call."""

    call: Entry
    version: int
    """Of the block that answers; of the call, where nothing does."""
    parts: tuple[Part, ...]
    """At least one."""
    failed: bool


@attrs.frozen(kw_only=True)
class Scale:
    """What contents weigh."""

    tokens: Callable[[Json, TokenCounter], int]
    counter: TokenCounter
    envelope: int = 0
    """Tokens of a message, whatever is in it."""
    kind: Callable[[Json], str] = lambda content: str(content.get("type"))
    """The provider's type of a content."""
    said: str = ""
    """What stands before that type where the model said it: of APIs that take no mark there."""


def returned(group: Group, notices: list[str]) -> Iterator[Returned]:
    """What answers each call, in the order of the calls."""
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


def others(
    group: Group, notices: list[str], *, answered: bool
) -> Iterator[tuple[int, Sequence[Part]]]:
    """What else came, entry by entry, and a line where nobody replied; `answered`: there were calls, or
    nothing was said."""
    entries = [entry for entry in group.entries if entry.place in OTHERS]
    shown = [(entry.version, tuple(heard(entry, notices))) for entry in entries]
    early = any(parts and (not group.sealed or v <= group.sealed) for v, parts in shown)
    if not answered and not early:
        yield group.placed(Place.RESPONSE)[-1].version, (TextPart(text=CONTINUE),)
    yield from ((version, parts) for version, parts in shown if parts)
    orphans = group.placed(Place.ORPHAN)
    notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)


def in_two(
    said: Sequence[tuple[int, Json]], heard: Sequence[tuple[int, Json]], model: str, field: str
) -> list[Sent]:
    """One message of the model's, whose role `model` is, and one of the user's, as far as there is something in
    them; contents stand under `field`."""
    return [
        Sent(
            item={"role": role, field: [content for _, content in contents]},
            by_model=role == model,
            contents=tuple(contents),
        )
        for role, contents in ((model, said), ("user", heard))
        if contents
    ]


def told(block: OpaqueBlock) -> str:
    """What a block says that only another provider reads: its compaction, for one, is a summary in
    words."""
    content: object = (verbatim(block) or {}).get("content")
    return block.text or (content if isinstance(content, str) else "")


# Pieces.


def piece_of(group: Group, sent: Sequence[Sent], scale: Scale, notices: Sequence[str]) -> Piece:
    """What a group is sent as, with what each block costs."""
    try:
        digest = _digest(sent)
    except UnicodeEncodeError:  # a text that went through no store
        sent = [_sendable(each) for each in sent]
        digest = _digest(sent)
    spots = tuple(spot for each in sent for spot in _spots(each, scale))
    notes = {entry.version for entry in group.entries if isinstance(entry.block, Note)}
    return Piece(
        group=group,
        contents=tuple(content for each in sent for _, content in each.contents),
        items=tuple(each.item for each in sent),
        spots=spots,
        tokens=sum(spot.tokens for spot in spots),
        pinned=sum(spot.tokens for spot in spots if spot.version in notes),
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
    """The same with what JSON cannot hold spelled out, as a store would have done."""
    contents = tuple((version, clean_json(content)) for version, content in sent.contents)
    return attrs.evolve(sent, item=clean_json(sent.item), contents=contents)


# The conversation that pieces are put together as.


def assembled(
    pieces: Sequence[Piece],
    marks: Iterable[tuple[int, int]],
    mark: Callable[[Piece, frozenset[int]], Iterable[Json]],
) -> list[Json]:
    """The items of all pieces; of a piece that gets marks, what `mark` makes of it: the same objects for the
    same marks."""
    by_piece: dict[int, set[int]] = {}
    for index, spot in marks:
        by_piece.setdefault(index, set()).add(spot)
    parts: list[tuple[Json, ...]] = list(map(_ITEMS, pieces))
    for index, spots in by_piece.items():
        marked, at = pieces[index].marked, frozenset(spots)
        if at not in marked:
            marked[at] = tuple(mark(pieces[index], at))
        parts[index] = marked[at]
    return list(chain.from_iterable(parts))


def joined(messages: list[Json], as_one: Callable[[Sequence[Json]], Json]) -> list[Json]:
    """Adjacent messages of one role as one; they are rare, and the others stay what they are."""
    roles = list(map(_ROLE, messages))
    if not any(map(eq, roles, roles[1:])):
        return messages
    runs = (list(run) for _, run in groupby(messages, _ROLE))
    return [run[0] if len(run) == 1 else as_one(run) for run in runs]


def behind(
    messages: list[Json], said: Json, as_one: Callable[[Sequence[Json]], Json]
) -> list[Json]:
    """The messages with one of the user's behind everything, and so behind the last mark: never cached."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, said]
    return [*messages[:-1], as_one([messages[-1], said])]
