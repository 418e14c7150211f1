"""The parts that an entry contributes to the user's message, before a provider encodes them."""

from collections.abc import Collection, Iterator, Sequence

from blocks import (
    Block,
    CallId,
    Note,
    Part,
    Plan,
    RangeSummary,
    SystemMessage,
    TextPart,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
)
from render.summary._extractive import words_of
from render.summary._quote import quoted
from render.summary._text import summary_texts
from render.view._group import Entry, Place


def role_of(entry: Entry, roles: Collection[str]) -> str:
    """The role under which an entry's parts are sent: that of the operator's message, if the provider has such a role
    between the user's and the model's."""
    role = entry.block.role if isinstance(entry.block, SystemMessage) else ""
    return role if role in roles else "user"


def heard(entry: Entry, notices: list[str]) -> Iterator[Part]:
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
