"""A round in the words that both APIs share: calls and their answers, what else was said, and the piece of a
request that it all becomes.

Repairs, each with a notice; the log keeps the original:

* a result without a call is not shown;
* a call without a result is answered "interrupted"; a result that comes after such a request was sent
  is shown as text, where it arrived (changing the sent answer would rewrite the prefix);
* an answer that nobody replied to is followed by a line of the user's;
* text that is empty or white space is not shown; an image that cannot be read is named.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from json import loads
from typing import Any, Final, cast

import attrs
import msgspec

from blocks import Note, OpaqueBlock, Part, TextPart, ToolCall, ToolResult, clean_json
from blocks.formats import spelled
from render.policy._provider import Piece, Spot, TokenCounter
from render.providers._heard import heard
from render.providers._names import CONTINUE, INTERRUPTED, NO_OUTPUT
from render.providers.openai._count import MESSAGE_TOKENS, content_tokens
from render.providers.openai._kinds import CUSTOM, CUSTOM_INPUT, MARK
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import Json, verbatim

FAILED: Final = "[the call failed]"
"""Before what a failed call gave: neither API has a field for it."""
EXPLICIT: Final = {"mode": "explicit"}
TAIL_ITEMS: Final = 40
"""Where the mark at the end of a request is looked for: behind it there are only texts that came back."""
_OTHERS: Final = frozenset({Place.USER, Place.LATE, Place.CARRIED})


@attrs.frozen(kw_only=True)
class Sent:
    """One message, or item of input, and the content in it that each block became."""

    item: Json
    by_model: bool
    contents: tuple[tuple[int, Json], ...]
    """With the versions of the blocks."""


def answers(group: Group, notices: list[str]) -> Iterator[tuple[Entry, int, Sequence[Part]]]:
    """For each call, in order: its entry, the version of what answers it, and the answer."""
    results = {entry.pair: entry for entry in group.placed(Place.RESULT)}
    for call in group.placed(Place.RESPONSE):
        if not isinstance(call.block, ToolCall):
            continue
        found = results.get(call.pair)
        if found is None or not isinstance(found.block, ToolResult):
            notices.append(f"a call without a result is answered as interrupted: {call.path}")
            yield call, call.version, (TextPart(text=f"{FAILED}\n{INTERRUPTED}"),)
        else:
            yield call, found.version, tuple(_output(found.block))


def _output(block: ToolResult) -> Iterator[Part]:
    parts = [p for p in block.parts if not (isinstance(p, TextPart) and not p.text.strip())]
    parts = parts or [TextPart(text=NO_OUTPUT)]
    if block.is_error:
        first = parts[0]
        said = f"{FAILED}\n{first.text}" if isinstance(first, TextPart) else FAILED
        yield TextPart(text=said)
        parts = parts[1:] if isinstance(first, TextPart) else parts
    yield from parts


def others(
    group: Group, notices: list[str], *, answered: bool
) -> Iterator[tuple[int, Sequence[Part]]]:
    """What else came, entry by entry, and a line where nobody replied; `answered`: there were calls, or
    nothing was said."""
    entries = [entry for entry in group.entries if entry.place in _OTHERS]
    shown = [(entry.version, tuple(heard(entry, notices))) for entry in entries]
    early = any(parts and (not group.sealed or v <= group.sealed) for v, parts in shown)
    if not answered and not early:
        yield group.placed(Place.RESPONSE)[-1].version, (TextPart(text=CONTINUE),)
    yield from ((version, parts) for version, parts in shown if parts)
    orphans = group.placed(Place.ORPHAN)
    notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)


def arguments_of(call: ToolCall) -> str:
    """The arguments as text: as the model wrote them, where it wrote an object; otherwise as JSON.

    Servers that match exact prefixes find what they generated; none of them takes a text that is no
    JSON object.
    """
    written: object = call.provider.get("arguments")
    if isinstance(written, str) and is_object(written):
        return written
    return spelled(call.input)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(loads(text), dict)
    except (ValueError, RecursionError):
        return False


def free_input(call: ToolCall) -> str | None:
    """The text that a tool was called with which takes a text; None: it was called with arguments."""
    text: object = call.input.get(CUSTOM_INPUT)
    is_free = call.provider.get("type") == CUSTOM and isinstance(text, str)
    return cast("str", text) if is_free else None


def told(block: OpaqueBlock) -> str:
    """What a block says that only another provider reads: its compaction, for one, is a summary in
    words."""
    content: object = (verbatim(block) or {}).get("content")
    return block.text or (content if isinstance(content, str) else "")


# Pieces.


def piece_of(
    group: Group, sent: Sequence[Sent], counter: TokenCounter, notices: Sequence[str]
) -> Piece:
    """What a group is sent as, with what each block costs."""
    try:
        digest = _digest(sent)
    except UnicodeEncodeError:  # a text that went through no store
        sent = [_sendable(each) for each in sent]
        digest = _digest(sent)
    spots = tuple(spot for each in sent for spot in _spots(each, counter))
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


def _spots(sent: Sent, counter: TokenCounter) -> Iterator[Spot]:
    role = "assistant" if sent.by_model else "user"
    envelope = MESSAGE_TOKENS
    for version, content in sent.contents:
        tokens, kind = envelope + content_tokens(content, counter), str(content.get("type"))
        yield Spot(
            version=version,
            role=role,
            tokens=tokens,
            kind=f"said {kind}" if sent.by_model else kind,
        )
        envelope = 0


def _digest(sent: Sequence[Sent]) -> bytes:
    return sha256(msgspec.json.encode([each.item for each in sent])).digest()


def _sendable(sent: Sent) -> Sent:
    """The same with what JSON cannot hold spelled out, as a store would have done."""
    contents = tuple((version, clean_json(content)) for version, content in sent.contents)
    return attrs.evolve(sent, item=clean_json(sent.item), contents=contents)


# Cache marks.


def marked(piece: Piece, spots: frozenset[int]) -> tuple[Json, ...]:
    """The piece's items with marks; the same objects for the same marks."""
    known: tuple[Json, ...] | None = piece.marked.get(spots)
    if known is None:
        known = piece.marked[spots] = tuple(reversed([*_marked(piece, spots)]))
    return known


def _marked(piece: Piece, spots: frozenset[int]) -> Iterator[Json]:
    """From the end: what can carry a mark comes after all that the model said."""
    place = len(piece.spots)
    for item in reversed(piece.items):
        parts = _parts_in(item)
        place -= parts
        hits = {spot - place for spot in spots if place <= spot < place + parts}
        yield _with_marks(item, hits) if hits else item


def _parts_in(item: Json) -> int:
    content: object = item.get("content")
    is_message = item.get("role") == "user" and isinstance(content, list)
    return len(cast("list[Any]", content)) if is_message else 1


def _with_marks(item: Json, hits: set[int]) -> Json:
    field = "output" if "output" in item else "content"
    parts: list[Json] = list(item[field])
    for hit in hits if item.get("role") == "user" else (len(parts) - 1,):
        parts[hit] = with_mark(parts[hit])
    return {**item, field: parts}


def with_mark(part: Json) -> Json:
    """The content part with a cache mark."""
    return {**part, MARK: EXPLICIT}


def assembled(pieces: Sequence[Piece], marks: Sequence[tuple[int, int]]) -> list[Json]:
    """The items of all pieces, those that get a mark replaced."""
    by_piece: dict[int, set[int]] = {}
    for index, spot in marks:
        by_piece.setdefault(index, set()).add(spot)
    parts: list[tuple[Json, ...]] = [piece.items for piece in pieces]
    for index, spots in by_piece.items():
        parts[index] = marked(pieces[index], frozenset(spots))
    return [item for part in parts for item in part]


def cache_options(items: Sequence[Json], key: str) -> Json:
    """What a request says of its cache: under which key it lies, and that marks, if there are any, are all
    that is written."""
    options: Json = {"prompt_cache_key": key} if key else {}
    if any(map(_is_marked, (*items[:1], *items[-TAIL_ITEMS:]))):
        options["prompt_cache_options"] = EXPLICIT
    return options


def _is_marked(item: Json) -> bool:
    parts: object = item.get("output") or item.get("content")
    return isinstance(parts, list) and any(MARK in part for part in cast("list[Json]", parts))
