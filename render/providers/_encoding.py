"""A round in terms that providers share: calls, their results, other content, and the pieces of a request.

Repairs, each with a notice; the log keeps the original:

* a result without a call is not shown;
* a call without a result is answered "interrupted"; a result that arrives after such a request was sent
  is shown as text at its own position (changing the sent answer would rewrite the prefix);
* if the last content is the model's, a line of the user follows, because most models refuse such a request;
* empty and white-space text is not shown; an unreadable image is named.
"""

import binascii
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, groupby, pairwise
from json import loads
from operator import eq, itemgetter
from typing import Final

import attrs
import msgspec

from blocks import (
    AssistantThinking,
    DocumentPart,
    ImagePart,
    Note,
    OpaqueBlock,
    Part,
    Plan,
    ProviderPart,
    RangeSummary,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    clean_json,
    did_you_mean,
    in_words,
    is_web_url,
    text_of,
    text_of_parts,
    words_of,
)
from blocks.formats import string
from render.policy._context import Piece, Spot
from render.view._view import Entry, Group, Json, Place, quoted, verbatim

# Parts, ids and tool names in a form that every provider accepts, and the texts that replace what none accepts.


INTERRUPTED: Final = "interrupted, no result was recorded"
CONTINUE: Final = "[continue]"
NO_OUTPUT: Final = "(no output)"
MIDWAY: Final = "[the beginning of this conversation is missing]"
ID_LENGTH_MAX: Final = 64
ID_HASH_LENGTH: Final = 16
NAME_LENGTH_MAX: Final = 64
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
PDF: Final = "application/pdf"
DOCUMENT_TEXT: Final = "text/plain"


# What an entry contributes to the user's message.


def is_blank(part: Part) -> bool:
    """Whether it is a text of white space, which no provider takes."""
    return isinstance(part, TextPart) and not part.text.strip()


def _text(entry: Entry) -> str:
    block = entry.block
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            is_carried = entry.place is Place.CARRIED
            return _earlier(entry, words_of(block)) if is_carried else block.text
        case UserAttachment():
            return ""
        case Note():
            return quoted("note", block.text)
        case Plan():
            return quoted("plan", block.text)
        case SystemMessage():
            return block.text if block.role else quoted("notice", block.text)
        case ToolResult() if entry.place is Place.CARRIED:
            return _earlier(entry, text_of(block))
        case ToolResult():
            late = f"result of call {block.call_id}, which came after it had been reported as interrupted"
            return f"[{late}]\n{text_of(block)}"
        case RangeSummary():
            from render.summary._text import format_summary  # only a folded log has one

            return format_summary(block)
        case _:
            return text_of(block)


def _earlier(entry: Entry, text: str) -> str:
    return quoted("earlier-message", text, path=entry.path)


def _parts(entry: Entry) -> Sequence[Part]:
    match entry.block:
        case UserPrompt(parts=parts) | UserFollowup(parts=parts) | UserSteer(parts=parts):
            if entry.place is Place.CARRIED:  # its text is already quoted
                return [part for part in parts if not isinstance(part, TextPart)]
            return parts
        case UserAttachment(part=part):
            return (part,)
        case _:
            return ()


# Parts that a provider refuses.


def part_refusal(part: Part, image_types: Sequence[str], own_refusal: Callable[[Json], str]) -> str:
    """Why a provider would refuse a part; empty: it would accept it, or the part is sent as text.

    `own_refusal` says it of the value of a provider's own part.
    """
    match part:
        case TextPart():
            return ""
        case ImagePart() | DocumentPart():
            return _media_refusal(part, image_types)
        case ProviderPart(value=value):
            return own_refusal(value)


def _media_refusal(part: ImagePart | DocumentPart, image_types: Sequence[str]) -> str:
    """Why an image or document would be refused; empty: it would be accepted."""
    if part.url:
        return "" if is_web_url(part.url) else f"{in_words(part.url)} is no http(s) url"
    if isinstance(part, ImagePart):
        if part.media_type not in image_types:
            return f"media_type {in_words(part.media_type)} is none of {', '.join(image_types)}"
    elif part.media_type == DOCUMENT_TEXT:
        return "" if part.data.strip() else "its text is empty"
    elif part.media_type != PDF:
        return f"media_type {in_words(part.media_type)} is neither {PDF} nor {DOCUMENT_TEXT}"
    return "" if is_base64(part.data) else "its data is not base64"


def misplaced(what: str, kind: object, allowed: Collection[str]) -> str:
    """Why a provider's own part is refused whose type is not one of `allowed`."""
    near = did_you_mean(kind, allowed) or f"; there are {', '.join(sorted(allowed))}"
    return f"{what} of type {in_words(kind)} cannot go there{near}"


def part_name(part: Part) -> str:
    """The text that replaces a part that a provider would refuse."""
    match part:
        case ImagePart() | DocumentPart():
            kind = "image" if isinstance(part, ImagePart) else "document"
            return f"[{kind}: its {'url' if part.url else 'data'} could not be read]"
        case ProviderPart(value={"tool_name": str(name)}):
            return f"[tool {name}]"
        case _:
            return text_of_parts((part,)).strip() or "[part]"


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(loads(text), dict)
    except (ValueError, RecursionError):
        return False


def is_base64(data: object) -> bool:
    """Whether the value is a non-empty text in base64."""
    if not isinstance(data, str) or not data:
        return False
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return True


# Ids and names.


def wire_id(pair: str, longest: int = ID_LENGTH_MAX) -> str:
    """The id itself if every provider accepts it; otherwise its accepted characters, with a hash that keeps
    such ids distinct."""
    plain = _FOREIGN.sub("_", pair)[:longest]
    if pair and plain == pair:
        return pair
    digest = sha256(pair.encode(errors="surrogatepass")).hexdigest()[:ID_HASH_LENGTH]
    return f"{plain[: longest - ID_HASH_LENGTH - 1]}_{digest}"


def tool_name(name: str) -> str:
    """A tool name that every provider accepts: `^[a-zA-Z0-9_-]{1,64}$`."""
    accepted = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
    return accepted[:NAME_LENGTH_MAX] or "tool"


# Rounds.


OTHERS: Final = frozenset({Place.USER, Place.LATE, Place.CARRIED})
"""Places of content other than responses and results."""


@attrs.frozen(kw_only=True)
class WireItem:
    """One message, or input item, with the content that each block contributed."""

    item: Json
    by_model: bool
    contents: tuple[tuple[int, Json], ...]
    """The content with the versions of its blocks."""


@attrs.frozen(kw_only=True)
class CallAnswer:
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

    tokens: Callable[[Json], int]
    """The tokens of a content."""
    envelope: int = 0
    """Tokens of a message in addition to its contents."""
    kind: Callable[[Json], str] = lambda content: str(content.get("type"))
    """The provider's type of a content."""
    model_prefix: str = ""
    """Prefix of the type for the model's contents, in APIs where these cannot carry a mark."""


def call_answers(group: Group, notices: list[str]) -> list[CallAnswer]:
    """The answer to each call, in the order of the calls."""
    answers: list[CallAnswer] = []
    results = {entry.pair: entry for entry in group.placed[Place.RESULT]}
    for call in group.placed[Place.RESPONSE]:
        if not isinstance(call.block, ToolCall):
            continue
        result = results.get(call.pair)
        if result is None or not isinstance(result.block, ToolResult):
            notices.append(f"a call without a result is answered as interrupted: {call.path}")
            lost = (TextPart(text=INTERRUPTED),)
            answers.append(CallAnswer(call=call, version=call.version, parts=lost, failed=True))
        else:
            parts = tuple(part for part in result.block.parts if not is_blank(part))
            parts, failed = parts or (TextPart(text=NO_OUTPUT),), result.block.is_error
            answers.append(
                CallAnswer(call=call, version=result.version, parts=parts, failed=failed)
            )
    return answers


def beside(
    answer: CallAnswer,
    identity: str,
    as_content: Callable[[Part], Json],
    elsewhere: str,
) -> tuple[list[str], list[tuple[int, Json]]]:
    """For an API whose results hold only text: the texts of a result, in which `elsewhere` marks each part that is none,
    and those parts with a text before them that names the call."""
    texts, parts = list[str](), list[Json]()
    for part in answer.parts:
        content = as_content(part)
        if "text" in content and content.get("type", "text") == "text":
            texts.append(content["text"])
        else:
            texts.append(f"{text_of_parts((part,))} {elsewhere}")
            parts.append(content)
    if parts:
        parts.insert(0, as_content(TextPart(text=f"[from the result of call {identity}]")))
    return texts, [(answer.version, content) for content in parts]


def absence(entry: Entry, *, keep_thinking: bool) -> Iterator[str]:
    """Notices for an entry of the model that is not shown."""
    if isinstance(entry.block, AssistantThinking) and keep_thinking:
        yield f"thinking that cannot be sent back is not shown: {entry.path}"
    elif verbatim(entry.block) is not None:
        yield f"a block that the provider refuses is not shown: {entry.path}"


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
    shown: list[Other] = []
    for entry in (entry for entry in group.entries if entry.place in OTHERS):
        if entry.place is Place.LATE:
            notices.append(f"a late result is shown as text: {entry.path}")
        role = entry.block.role if isinstance(entry.block, SystemMessage) else ""
        parts = (TextPart(text=_text(entry)), *_parts(entry))
        visible = tuple(part for part in parts if not is_blank(part))
        shown.append(Other(entry.version, role if role in roles else "user", visible))
    early = any(
        other.parts and other.role == "user" and (not group.sealed or other.version <= group.sealed)
        for other in shown
    )
    if not answered and not early:
        newest = group.placed[Place.RESPONSE][-1].version
        yield Other(newest, "user", (TextPart(text=CONTINUE),))
    yield from (other for other in shown if other.parts)
    orphans = group.placed[Place.ORPHAN]
    notices += (f"a result without a call is not shown: {entry.path}" for entry in orphans)


def by_role(
    contents: Mapping[str, Sequence[tuple[int, Json]]], model: str, field: str
) -> list[WireItem]:
    """A message for each role that has contents, under `field`; `model` is the model's role."""
    return [
        WireItem(
            item={"role": role, field: [content for _, content in own]},
            by_model=role == model,
            contents=tuple(own),
        )
        for role, own in contents.items()
        if own
    ]


def foreign_text(block: OpaqueBlock) -> str:
    """The text of a block that another provider wrote, for example of its own compaction."""
    return block.text or string((verbatim(block) or {}).get("content"))


# Building pieces.


def piece_of(group: Group, sent: Sequence[WireItem], scale: Scale, notices: Sequence[str]) -> Piece:
    """The piece for a group, with the tokens of each block."""
    try:
        digest = _digest(sent)
    except UnicodeEncodeError:  # not cleaned by a store
        sent = [_sendable(each) for each in sent]
        digest = _digest(sent)
    spots = tuple([spot for each in sent for spot in _spots(each, scale)])
    notes = {e.version for e in group.entries if isinstance(e.block, Note)}
    return Piece(
        contents=tuple([content for each in sent for _, content in each.contents]),
        items=tuple(each.item for each in sent),
        spots=spots,
        tokens=sum(spot.tokens for spot in spots),
        pinned=sum(spot.tokens for spot in spots if spot.version in notes),
        standing=sum(spot.tokens for spot in spots if spot.version in group.standing),
        digest=digest,
        notices=tuple(notices),
    )


def _spots(sent: WireItem, scale: Scale) -> Iterator[Spot]:
    role = "assistant" if sent.by_model else "user"
    envelope = scale.envelope
    for version, content in sent.contents:
        tokens = envelope + scale.tokens(content)
        kind = scale.model_prefix * sent.by_model + scale.kind(content)
        yield Spot(version=version, role=role, tokens=tokens, kind=kind)
        envelope = 0


def _digest(sent: Sequence[WireItem]) -> bytes:
    return sha256(msgspec.json.encode([each.item for each in sent])).digest()


def _sendable(sent: WireItem) -> WireItem:
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


def joined(
    messages: list[Json], as_one: Callable[[Sequence[Json]], Json], only: str = ""
) -> list[Json]:
    """The messages with adjacent ones of the same role (or of the role `only`) joined; other messages stay the same
    objects."""
    roles = [message["role"] for message in messages]
    alike = (only, only) in pairwise(roles) if only else any(map(eq, roles, roles[1:]))
    if not alike:
        return messages
    runs = (list(run) for _, run in groupby(messages, itemgetter("role")))
    return [
        message
        for run in runs
        for message in (
            [as_one(run)] if len(run) > 1 and run[0]["role"] == (only or run[0]["role"]) else run
        )
    ]


def behind(
    messages: list[Json], user_message: Json, as_one: Callable[[Sequence[Json]], Json]
) -> list[Json]:
    """The messages with a user message at the end, after the last mark, so it is never cached."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, user_message]
    return [*messages[:-1], as_one([messages[-1], user_message])]
