"""How far a foreign history and a log agree.

What was synced once is known by a hash of the whole history up to there, which stands with its last block
(`BlockAppended.agrees`): nothing of it is compared again, and nothing of it can be edited unnoticed.  What was
recorded in other ways since may lack a detail, or have one more, and is known by its ids: a message by its
own, a call and its result by that of the call; by its content where it has none.

What the history need not have: thinking, notes, plans, notices, and what a user said meanwhile.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs

from blocks import (
    Agreed,
    AssistantBlock,
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockAppended,
    OpaqueBlock,
    Part,
    Recorded,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
    text_of_parts,
)
from blocks.formats import Call, Message, Result, Said, Thought, Verbatim, parts_in
from timeline.engine._history import FORM, History, Item

Piece: TypeAlias = Message | Said | Call | Result | Thought | Verbatim
"""What is one block: of a message of the user's, or of the system's, all its parts."""
_WORDS = UserPrompt | UserSteer | UserFollowup


@attrs.frozen(kw_only=True)
class Missing:
    """What of a message is not in the log."""

    index: int
    message: Message
    pieces: tuple[Piece, ...]


@attrs.frozen(kw_only=True)
class Parting:
    """How far they agree."""

    missing: tuple[Missing, ...] = ()
    """What the log lacks, in order."""
    diverged: int | None = None
    """Index of the first message that the log has in another way; None: there is none."""
    version: int = 0
    """Version of the block that stands in its place."""


def parting(history: History, log: Sequence[Recorded], start: Agreed | None) -> Parting:
    """How far a history agrees with a log, of which `log` is what came behind the mark `start`."""
    appended = [(version, e) for version, e in log if isinstance(e, BlockAppended)]
    marks = (event.agrees for _, event in appended if event.agrees is not None)
    counts = (mark.messages for mark in marks if mark.chain.startswith(FORM))
    differs = min((count for count in counts if count <= len(history.items)), default=0)
    walk = _Walk([_Known(version=version, block=event.block) for version, event in appended])
    return walk.along(history.items, start.messages if start else 0, differs)


@attrs.define(kw_only=True)
class _Known:
    """A block of the log."""

    version: int
    block: Block
    is_taken: bool = False

    @property
    def is_required(self) -> bool:
        """Whether the history has to have it, too."""
        return isinstance(self.block, UserPrompt | AssistantCompletion | ToolCall | ToolResult)


class _DivergedError(Exception):
    """The log has something else there."""


class _Walk:
    """Goes along the blocks of a log, as the messages of a history name them."""

    def __init__(self, known: Sequence[_Known]) -> None:
        self._known = known
        self._at = 0
        """Everything before it is taken, or was left out."""

    def along(self, items: Sequence[Item], start: int, differs: int) -> Parting:
        """How far it gets from a message on; `differs`: the number of messages by which it has certainly
        parted, or 0."""
        missing: list[Missing] = []
        is_over = False
        for index in range(start, len(items)):
            place = self._next()
            try:
                for message in items[index].messages:
                    pieces = tuple(pieces_of(message))
                    lacking = pieces if is_over else self._lacking(message, pieces)
                    is_over = is_over or (self._next() is None and lacking == pieces != ())
                    if lacking:
                        missing.append(Missing(index=index, message=message, pieces=lacking))
            except _DivergedError:
                return Parting(diverged=index, version=place.version if place else 0)
            if index + 1 == differs:
                return Parting(diverged=index, version=place.version if place else 0)
        return Parting(missing=tuple(missing))

    def _next(self) -> _Known | None:
        """The first block that the history has to have, and did not have yet."""
        rest = range(self._at, len(self._known))
        known = (self._known[index] for index in rest)
        return next((k for k in known if k.is_required and not k.is_taken), None)

    def _lacking(self, message: Message, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        """What of a message is not there; what is, is taken."""
        was_over = self._next() is None
        if message.role == "assistant" and message.id and self._take_response(message.id):
            return ()
        lacking: list[Piece] = []
        for piece in pieces:
            if self._take(piece):
                continue
            place = self._next()
            if place is None or (isinstance(piece, Result) and isinstance(place.block, ToolResult)):
                if was_over or _is_required(piece):
                    lacking.append(piece)
            elif _is_required(piece):
                raise _DivergedError
        return tuple(lacking)

    def _take(self, piece: Piece) -> bool:
        """Take the block that is this; of results, which come in any order, one of those that come next."""
        for index in range(self._at, len(self._known)):
            known = self._known[index]
            if known.is_taken:
                continue
            if _is_same(piece, known.block):
                known.is_taken = True
                self._at = self._at if isinstance(piece, Result) else index + 1
                self._skip_taken()
                return True
            is_among = isinstance(piece, Result) and isinstance(known.block, ToolResult)
            if known.is_required and not is_among:
                return False
        return False

    def _take_response(self, source: str) -> bool:
        """Take all blocks of one response, if that comes next."""
        is_found = False
        for index in range(self._at, len(self._known)):
            known = self._known[index]
            if source in _ids(known.block):
                known.is_taken = is_found = True
                self._at = index + 1
            elif known.is_required:
                break
        return is_found

    def _skip_taken(self) -> None:
        while self._at < len(self._known) and self._known[self._at].is_taken:
            self._at += 1


def pieces_of(message: Message) -> Iterator[Piece]:
    """What a message is in the log: block for block, results first."""
    for content in message.content:
        if isinstance(content, Said | Call | Result | Thought | Verbatim):
            yield content
    if parts := parts_in(message.content):
        yield attrs.evolve(message, content=tuple(parts))


def _is_required(piece: Piece) -> bool:
    return isinstance(piece, Said | Call | Result) or (
        isinstance(piece, Message) and piece.role != "system"
    )


def _ids(block: Block) -> set[str]:
    response = block.response if isinstance(block, AssistantBlock) else ""
    if isinstance(block, OpaqueBlock):
        response = str(block.fields.get("response", ""))
    return {block.source, response}


def _is_same(piece: Piece, block: Block) -> bool:
    own = piece.id if isinstance(piece, Message) else piece.source
    if own and own == block.source:
        return True
    match piece, block:
        case Call(call_id=call_id), ToolCall():
            return call_id == block.call_id
        case Result(call_id=call_id), ToolResult():
            return call_id == block.call_id
        case Said(text=text), AssistantCompletion():
            return text.strip() == block.text.strip()
        case Thought(value=value), AssistantThinking():
            return value == block.provider
        case Verbatim(value=value), OpaqueBlock():
            return bool(value == block.fields.get("value"))
        case Message(role="system"), SystemMessage():
            return text_of_parts(parts_in(piece.content)) == block.text
        case Message(role="user" | "tool"), _:
            return _are_words(parts_in(piece.content), block)
        case _:
            return False


def _are_words(parts: Sequence[Part], block: Block) -> bool:
    """Whether a block says what a user's message says: its text or, where there is none, its parts."""
    if isinstance(block, UserAttachment):
        return tuple(parts) == (block.part,)
    if not isinstance(block, _WORDS):
        return False
    text = text_of_parts([part for part in parts if isinstance(part, TextPart)])
    if text.strip():
        own = [TextPart(text=block.text), *block.parts] if block.text else block.parts
        return text == text_of_parts([part for part in own if isinstance(part, TextPart)])
    return text_of_parts(parts) == text_of(block) and tuple(parts) == block.parts
