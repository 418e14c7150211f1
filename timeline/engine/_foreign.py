"""The blocks of a foreign history that a timeline lacks."""

from collections.abc import Callable, Iterator
from itertools import groupby

import attrs

from blocks import (
    Block,
    BlockId,
    CallId,
    Part,
    TextPart,
    ToolCall,
    TurnHeader,
    TurnId,
    UserAttachment,
    UserPrompt,
    UserSteer,
)
from blocks.formats import (
    INTERRUPTION,
    BlockMaker,
    ClientText,
    Message,
    Result,
    client_text,
    parts_in,
)
from render import View
from timeline.engine._parting import Missing


@attrs.define(kw_only=True)
class Filler:
    """Makes the blocks for the missing messages of a history, one message after the other."""

    view: View
    new_id: Callable[[], BlockId]
    now: float
    _turn: TurnId = attrs.field(init=False)
    _turns: int = attrs.field(default=0, init=False)
    """Number of turns that were opened here."""
    _is_fresh: bool = attrs.field(default=False, init=False)
    """Whether the newest turn was opened here and contains only context so far."""
    _is_opening: bool = attrs.field(init=False)
    """Whether the model has not answered yet."""
    _asked: dict[CallId, TurnId] = attrs.field(factory=dict[CallId, TurnId], init=False)
    """The turns of the calls that were made here."""

    def __attrs_post_init__(self) -> None:
        self._turn = self.view.turn
        self._is_opening = not self.view.state.rounds

    def blocks(self, missing: Missing) -> list[Block]:
        """The blocks for the missing pieces of one step."""
        content = [
            content
            for piece in missing.pieces
            for content in (piece.content if isinstance(piece, Message) else (piece,))
        ]
        # Text beside tool results reaches an agent that is still working.
        is_meanwhile = any(isinstance(c, Result) for c in missing.step.message.content)
        voice = UserSteer if is_meanwhile else UserPrompt
        made = list(self._made(attrs.evolve(missing.step.message, content=tuple(content)), voice))
        self._asked.update((b.call_id, b.turn) for b in made if isinstance(b, ToolCall))
        return made

    def _made(self, message: Message, voice: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        for result in [piece for piece in message.content if isinstance(piece, Result)]:
            yield from self._opened()
            turn = self._turn_of(CallId(result.call_id))
            yield attrs.evolve(self._maker, turn=turn).result(result, message.id)
        match message.role:
            case "assistant":
                yield from self._opened()
                self._is_fresh = self._is_opening = False
                yield from self._maker.spoken(message)
            case "system":
                yield from self._opened()
                yield from self._maker.told(message)
            case _ if parts_in(message.content):
                yield from self._heard(message, voice)
            case _:
                pass

    def _heard(self, message: Message, voice: type[UserPrompt | UserSteer]) -> Iterator[Block]:
        """The blocks of a user's message in its order: the user's words, and attachments for what the user's program
        added. Words after an attachment are a prompt of their own; after an interruption, even beside results."""
        parts = parts_in(message.content)
        has_words_ahead = not all(map(self._client_text, parts))
        for client, run in groupby(parts, self._client_text):
            is_asked = voice is UserPrompt and (has_words_ahead or not client)
            yield from self._next_turn() if is_asked and not self._is_fresh else self._opened()
            if client:
                yield from (self._attachment(part, client, message.id) for part in run)
                voice = UserPrompt if client.name == INTERRUPTION else voice
            else:
                has_words_ahead = self._is_fresh = False
                yield from self._maker.words(attrs.evolve(message, content=tuple(run)), voice)

    def _attachment(self, part: Part, client: ClientText, source: str) -> Block:
        return UserAttachment(
            id=self.new_id(),
            turn=self._turn,
            source=source,
            name=client.name,
            part=part,
            standing=client.standing,
        )

    @property
    def _maker(self) -> BlockMaker:
        return BlockMaker(new_id=self.new_id, turn=self._turn)

    def _opened(self) -> Iterator[Block]:
        """A turn header, if no turn is open yet."""
        return iter(()) if self._turn else self._next_turn()

    def _next_turn(self) -> Iterator[Block]:
        number = int(self.view.new_turn.removeprefix("t")) + self._turns
        self._turn, self._turns = TurnId(f"t{number}"), self._turns + 1
        self._is_fresh = True
        yield TurnHeader(id=self.new_id(), turn=self._turn, started_at=self.now)

    def _turn_of(self, call_id: CallId) -> TurnId:
        return self._asked.get(call_id) or self.view.turn_of(call_id) or self._turn

    def _client_text(self, part: Part) -> ClientText | None:
        """What a part is that the user's client wrote; None for the user's own words and for pictures."""
        if not isinstance(part, TextPart):
            return None
        return client_text(part.text, is_opening=self._is_opening)
