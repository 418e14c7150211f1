"""Parts, ids and tool names in a form that every provider accepts, and the texts that replace what none accepts."""

import binascii
import re
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Final

from blocks import (
    Block,
    CallId,
    DocumentPart,
    ImagePart,
    Note,
    Part,
    Plan,
    ProviderPart,
    RangeSummary,
    SystemMessage,
    TextPart,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    did_you_mean,
    in_words,
    is_web_url,
    text_of,
    text_of_parts,
)
from render.summary._extractive import words_of
from render.summary._quote import quoted
from render.summary._text import summary_texts
from render.view._group import Entry, Place

INTERRUPTED: Final = "interrupted, no result was recorded"
CONTINUE: Final = "[continue]"
NO_OUTPUT: Final = "(no output)"
MIDWAY: Final = "[the session starts mid-way]"
ID_LENGTH_MAX: Final = 64
ID_HASH_LENGTH: Final = 16
NAME_LENGTH_MAX: Final = 64
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
PDF: Final = "application/pdf"
DOCUMENT_TEXT: Final = "text/plain"


# What an entry contributes to the user's message.


def role_of(entry: Entry, roles: Collection[str]) -> str:
    """The role under which an entry's parts are sent: that of the operator's message, if the provider has such a role
    between the user's and the model's."""
    role = entry.block.role if isinstance(entry.block, SystemMessage) else ""
    return role if role in roles else "user"


def user_parts(entry: Entry, notices: list[str]) -> Iterator[Part]:
    """The parts that an entry shows in the user's message, without blank texts."""
    block = entry.block
    if entry.place is Place.LATE:
        notices.append(f"a late result is shown as text: {entry.path}")
    for text in _texts(entry, block):
        if text.strip():
            yield TextPart(text=text)
    for part in _parts(entry, block):
        if not (isinstance(part, TextPart) and not part.text.strip()):
            yield part


def _texts(entry: Entry, block: Block) -> Sequence[str]:
    return summary_texts(block) if isinstance(block, RangeSummary) else (_text(entry, block),)


def _text(entry: Entry, block: Block) -> str:
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            is_carried = entry.place is Place.CARRIED
            return _earlier(entry, words_of(entry)) if is_carried else block.text
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
            return _late(block.call_id, text_of(block))
        case _:
            return text_of(block)


def _earlier(entry: Entry, text: str) -> str:
    return quoted("earlier-message", text, path=entry.path)


def _late(call_id: CallId, text: str) -> str:
    return (
        f"[result of call {call_id}, which came after it had been reported as interrupted]\n{text}"
    )


def _parts(entry: Entry, block: Block) -> Sequence[Part]:
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            if entry.place is Place.CARRIED:  # its text is already quoted
                return [part for part in block.parts if not isinstance(part, TextPart)]
            return block.parts
        case UserAttachment():
            return (block.part,)
        case _:
            return ()


# Images and documents.


def media_refusal(part: ImagePart | DocumentPart, image_types: Sequence[str]) -> str:
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


def misplaced(what: str, kind: object, taken: Collection[str]) -> str:
    """Why a provider's own part is refused whose type is not one of `taken`."""
    near = did_you_mean(kind, taken) or f"; there are {', '.join(sorted(taken))}"
    return f"{what} of type {in_words(kind)} cannot go there{near}"


def unreadable(part: ImagePart | DocumentPart) -> str:
    """The text that replaces an image or document that would be refused."""
    kind = "image" if isinstance(part, ImagePart) else "document"
    return f"[{kind}: its {'url' if part.url else 'data'} could not be read]"


def named(part: Part) -> str:
    """The text that replaces a part that a provider would refuse."""
    match part:
        case ImagePart() | DocumentPart():
            return unreadable(part)
        case ProviderPart(value={"tool_name": str(name)}):
            return f"[tool {name}]"
        case _:
            return text_of_parts((part,)).strip() or "[part]"


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
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
    return kept[:NAME_LENGTH_MAX] or "tool"
