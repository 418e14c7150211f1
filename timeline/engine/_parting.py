"""How far a foreign history and a log agree.

Synced messages are recognized by a hash of the whole history so far, which is stored with the last block
(`BlockAppended.agrees`): they are not compared again, and no edit of them goes unnoticed.  Messages that were
recorded in other ways since then may differ in details. They are recognized by ids: a message by its
own id, a call and its result by the id of the call; without ids, by their content.

The history need not contain thinking, notes, plans, notices, steers and follow-ups.
"""

from collections.abc import Sequence

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
    text_of_parts,
)
from blocks.formats import Call, Message, Result, Said, Thought, Verbatim, parts_in
from timeline.engine._history import History, Own, Piece, Step


@attrs.frozen(kw_only=True)
class Missing:
    """The part of a step that the log lacks."""

    count: int
    """Number of steps up to and including this one."""
    step: Step
    pieces: tuple[Piece | Own, ...]


@attrs.frozen(kw_only=True)
class Parting:
    """How far a history and a log agree."""

    missing: tuple[Missing, ...] = ()
    """The parts that the log lacks, in order."""
    found: int = 0
    """Number of steps up to and including the last one that the log has."""
    diverged: int | None = None
    """Number of steps before the first one that differs from the log; None: none differs."""
    version: int = 0
    """Version of the block in the log that differs from that step."""
    ahead: int = 0
    """Version of the first block that follows in the log after the history ends; 0: none."""


def parting(history: History, log: Sequence[Recorded], start: Agreed | None) -> Parting:
    """Compare a history with a log; `log` has the events after the mark `start`."""
    appended = [(version, e) for version, e in log if isinstance(e, BlockAppended)]
    marks = (event.agrees for _, event in appended if event.agrees is not None)
    counts = (mark.pieces for mark in marks if history.is_like(mark))
    differs = min((count for count in counts if count < len(history.chain)), default=0)
    walk = _Walk([_Known(version=version, block=event.block) for version, event in appended])
    return walk.along(history.steps, start.pieces if start else 0, differs)


@attrs.define(kw_only=True)
class _Known:
    """A block of the log."""

    version: int
    block: Block
    is_taken: bool = False

    @property
    def is_required(self) -> bool:
        """Whether the history must contain it, too."""
        return isinstance(self.block, UserPrompt | AssistantCompletion | ToolCall | ToolResult)


class _Walk:
    """Matches the blocks of a log with the pieces of a history, in order."""

    def __init__(self, known: Sequence[_Known]) -> None:
        self._known = known
        self._at = 0
        """Index before which all blocks were matched or skipped."""
        self._is_over = False
        """Whether the log has no more blocks to compare."""
        self._response: str = ""
        """Id of the response that was last matched as a whole."""

    def along(self, steps: Sequence[Step], start: int, differs: int) -> Parting:
        """The result for the steps after the first `start`; `differs` is the number of the first step that is known
        to differ, or 0."""
        missing: list[Missing] = []
        found = start
        for count, step in enumerate(steps[start:], start + 1):
            place, lacking = self._next(), self._lacking(step)
            if lacking is None or count == differs:
                return Parting(diverged=count - 1, version=place.version if place else 0)
            if lacking:
                missing.append(Missing(count=count, step=step, pieces=lacking))
            elif step.piece is not None:
                found = count
        further = self._next()
        ahead = further.version if further and not missing else 0
        return Parting(missing=tuple(missing), found=found, ahead=ahead)

    def _next(self) -> _Known | None:
        """The first block that the history must contain and that was not matched yet."""
        rest = range(self._at, len(self._known))
        known = (self._known[index] for index in rest)
        return next((k for k in known if k.is_required and not k.is_taken), None)

    def _lacking(self, step: Step) -> tuple[Piece | Own, ...] | None:
        """The pieces of a step that the log lacks; pieces that it has are marked as matched. None: the log has
        something else there."""
        piece = step.piece
        if self._is_over:
            return step.own if piece is None else (*step.own, piece)
        own = () if self._next() else tuple(one for one in step.own if not self._take(one))
        if piece is None:
            return own
        if self._take_response(step.message) or self._take(piece):
            return ()
        place = self._next()
        self._is_over = place is None
        if place and not (isinstance(piece, Result) and isinstance(place.block, ToolResult)):
            return () if isinstance(piece, Message) and piece.role == "system" else None
        return (*own, piece)

    def _take(self, piece: Piece | Own) -> bool:
        """Match a piece with a block. Tool results may be in any order, so a result may match any of the results
        that come next."""
        is_result = isinstance(piece, Result)
        for index in range(self._at, len(self._known)):
            known = self._known[index]
            if known.is_taken:
                continue
            if _is_same(piece, known.block):
                known.is_taken = True
                self._at = self._at if is_result else index + 1
                return True
            if known.is_required and not (is_result and isinstance(known.block, ToolResult)):
                return False
        return False

    def _take_response(self, message: Message) -> bool:
        """Match all blocks of a response with its message, if they come next or were matched last."""
        if message.role != "assistant" or not message.id:
            return False
        if message.id == self._response:
            return True
        for index in range(self._at, len(self._known)):
            known = self._known[index]
            if message.id in _ids(known.block):
                known.is_taken = True
                self._at, self._response = index + 1, message.id
            elif known.is_required:
                break
        return message.id == self._response


def _ids(block: Block) -> tuple[str, str]:
    response: object = ""
    if isinstance(block, AssistantBlock):
        response = block.response
    elif isinstance(block, OpaqueBlock):
        response = block.fields.get("response")
    return block.source, str(response)


def _is_same(piece: Piece | Own, block: Block) -> bool:
    own = piece.id if isinstance(piece, Message) else piece.source
    if own and own == block.source:
        return True
    match piece, block:
        case (Call(call_id=asked), ToolCall(call_id=known)) | (
            Result(call_id=asked),
            ToolResult(call_id=known),
        ):
            return asked == known
        case Said(text=text), AssistantCompletion():
            return text.strip() == block.text.strip()
        case Thought(value=value), AssistantThinking():
            return value == block.provider
        case Verbatim(value=value), OpaqueBlock():
            return bool(value == block.fields.get("value"))
        case Message(role="system"), SystemMessage():
            return text_of_parts(parts_in(piece.content)) == block.text
        case Message(), _:
            return _are_words(parts_in(piece.content), block)
        case _:
            return False


def _are_words(parts: Sequence[Part], block: Block) -> bool:
    """Whether a block has the content of a user's message: the same text or, without any text, the same parts."""
    if isinstance(block, UserAttachment):
        return tuple(parts) == (block.part,)
    if not isinstance(block, UserPrompt | UserSteer | UserFollowup):
        return False
    said = [part for part in parts if isinstance(part, TextPart)]
    own = [TextPart(text=block.text), *(p for p in block.parts if isinstance(p, TextPart))]
    if said:
        return text_of_parts(said) == text_of_parts(own if block.text else own[1:])
    return not block.text and tuple(parts) == block.parts
