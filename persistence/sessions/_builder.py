"""Builds a session from what an importer finds in its log, line by line.

A log is not yet a dialogue: responses are in pieces with results in between, results come before their
calls, and clocks run backwards.  The builder keeps one *stretch* per response, opens turns, pairs results
with calls, and numbers the blocks once all are in order.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, TypeAlias, TypeVar

import attrs

from blocks import (
    Block,
    ImagePart,
    Part,
    SessionFormatError,
    SystemMessage,
    TextPart,
    TurnHeader,
    TurnId,
    UserAttachment,
    UserPrompt,
    UserSteer,
    text_of_parts,
)
from blocks.formats import Json, client_text, operator_text
from persistence.sessions._order import clocked, numbered
from persistence.sessions._pairing import Pairing, unused
from persistence.sessions._returned import Returned
from persistence.sessions._session import Arrived, Notice, Responded, Session
from persistence.sessions._source import Source
from persistence.sessions._stretch import NEW, Asked, Stretch

_Talk = TypeVar("_Talk")
Voice: TypeAlias = Literal["prompt", "steer"]
"""What a user's text is: a prompt, or a steer that arrives in a running turn."""


@attrs.define
class Builder:
    """Builds one session."""

    source: Source
    format: str
    clock: float = attrs.field(default=0.0, init=False)
    """The latest time seen so far; 0: none."""
    model: str = attrs.field(default="", init=False)
    system: str = attrs.field(default="", init=False)
    tools: tuple[Json, ...] = attrs.field(default=(), init=False)
    notices: list[Notice] = attrs.field(factory=list[Notice], init=False)
    _stretches: list[Stretch] = attrs.field(init=False)
    _pairing: Pairing[Stretch, tuple[Returned, float]] = attrs.field(
        factory=Pairing[Stretch, tuple[Returned, float]], init=False
    )
    _asked: list[Asked] = attrs.field(factory=list[Asked], init=False)
    """Calls in the current line; they get its time in `tick`."""
    _response_ids: set[str] = attrs.field(factory=set[str], init=False)
    _turn: TurnId = attrs.field(default=TurnId(""), init=False)
    _turns: int = attrs.field(default=0, init=False)
    _fresh: bool = attrs.field(default=False, init=False)
    """Whether the current turn has neither a prompt nor a response yet."""

    def __attrs_post_init__(self) -> None:
        self._stretches = [Stretch(id="", turn=self._turn, at=0.0)]

    @property
    def latest(self) -> Stretch:
        """The latest response; before the first, an empty one."""
        return self._stretches[-1]

    @property
    def started(self) -> bool:
        """Whether a turn has begun."""
        return bool(self._turn)

    def pick(self, conversations: Sequence[_Talk]) -> _Talk:
        """The requested one of several conversations in the file; if none was requested, the first.

        Raises:
            SessionFormatError: there is no such conversation.
        """
        number, path = len(conversations), self.source.path
        index = self.source.index
        if (index or 0) >= number:
            raise SessionFormatError(f"{path}: no conversation #{index or 0}; it holds {number}")
        if index is None and number > 1:
            self.skip(0, f"the first of {number} conversations; name another as {path}#1")
        return conversations[index or 0]

    def tick(self, at: float | None) -> None:
        """Set the clock to `at`, unless that is earlier; None: no time."""
        self.clock = max(self.clock, at or 0.0)
        for asked in self._asked:
            asked.at = self.clock if at else 0.0
        self._asked.clear()

    def skip(self, line: int, text: str) -> None:
        """Report something that the session does not contain."""
        self.notices.append(Notice(line=line, text=text))

    def user(self, parts: Sequence[Part], at: float | None, voice: Voice = "prompt") -> None:
        """Add a message of the user: the user's own text, and the texts of the program in it as attachments."""
        self.tick(at)
        own = [p for p in parts if not (isinstance(p, TextPart) and client_text(p.text))]
        if not own:
            self.attach(parts, at)
            return
        header = self._open(voice)
        start = next(i for i, part in enumerate(parts) if part is own[0])
        rest = [part for part in parts[start:] if part not in own]
        words = self._words(own, voice)
        self._arrive((*header, *self._attachments(parts[:start]), words, *self._attachments(rest)))
        self._fresh = False

    def attach(self, parts: Sequence[Part], at: float | None, name: str = "context") -> None:
        """Add context that is not a prompt of the user."""
        self.tick(at)
        if parts:
            header = () if self._turn else self._next_turn()
            self._arrive((*header, *self._attachments(parts, name)))

    def operator(self, parts: Sequence[Part], at: float | None, role: str) -> None:
        """Add a message of the operator, which came under the role `system` or `developer`."""
        self.tick(at)
        texts = [part.text for part in parts if isinstance(part, TextPart) and part.text.strip()]
        if texts:
            header = () if self._turn else self._next_turn()
            messages = (
                SystemMessage(
                    id=NEW,
                    turn=self._turn,
                    text=text,
                    role=role,
                    standing=operator_text(text).standing,
                )
                for text in texts
            )
            self._arrive((*header, *messages))

    def respond(self, response_id: str = "") -> Stretch:
        """Begin a model response, at the time of the last line before it."""
        if not self._turn:
            self._arrive(self._next_turn())
        self._fresh = False
        self.latest.until = self.clock
        response_id = unused(response_id or f"r{len(self._stretches)}", self._response_ids)
        self._stretches.append(Stretch(id=response_id, turn=self._turn, at=self.clock))
        return self.latest

    def call(self, response: Stretch, raw_id: str, name: str, tool_input: Json) -> None:
        """Add a tool call to the response."""
        call_id, early = self._pairing.call(response, raw_id)
        self._asked.append(response.call(call_id, name, tool_input))
        if early:
            response.answer(call_id, *early)

    def result(self, raw_id: str, returned: Returned, at: float | None) -> None:
        """Add the result of a tool call."""
        self.tick(at)
        try:
            asked = self._pairing.answer(raw_id, (returned, self.clock))
        except KeyError:
            self.skip(returned.line, f"second result of call {raw_id!r}, skipped")
            return
        if asked:
            response, call_id = asked
            response.answer(call_id, returned, self.clock)

    def build(self) -> Session:
        """The session, with numbered blocks and times that never decrease."""
        for raw_id, (returned, _) in self._pairing.early.items():
            self.skip(returned.line, f"result without a call ({raw_id!r}), skipped")
        items = [item for stretch in self._stretches for item in stretch.items()]
        model = next((i.model for i in items if isinstance(i, Responded) and i.model), self.model)
        notices = sorted((*self.source.notices, *self.notices), key=lambda n: n.line)
        return Session(
            name=self.source.name,
            format=self.format,
            model=model,
            system=self.system,
            tools=self.tools,
            items=tuple(numbered(clocked(items))),
            notices=tuple(notices),
        )

    def _arrive(self, blocks: tuple[Block, ...]) -> None:
        self.latest.arrived.append(Arrived(at=self.clock, blocks=blocks))

    def _next_turn(self) -> tuple[TurnHeader]:
        self._turns += 1
        self._turn = TurnId(f"t{self._turns}")
        self._fresh = True
        return (TurnHeader(id=NEW, turn=self._turn),)

    def _open(self, voice: Voice) -> tuple[TurnHeader, ...]:
        """Begin a turn for a prompt, unless the current turn has only context so far."""
        if self._turn and (voice == "steer" or self._fresh):
            return ()
        return self._next_turn()

    def _words(self, own: Sequence[Part], voice: Voice) -> Block:
        """The user's block: text up to the first image is its text, all that follows are parts, in order."""
        texts = list(takewhile(lambda part: isinstance(part, TextPart), own))
        text, parts = text_of_parts(texts), tuple(own[len(texts) :])
        kind = UserSteer if voice == "steer" and not self._fresh else UserPrompt
        return kind(id=NEW, turn=self._turn, text=text, parts=parts)

    def _attachments(self, parts: Sequence[Part], name: str = "context") -> Iterator[Block]:
        is_opening = len(self._stretches) == 1  # the empty one
        for part in parts:
            client = None
            if isinstance(part, TextPart):
                client = client_text(part.text, is_opening=is_opening)
            yield UserAttachment(
                id=NEW,
                turn=self._turn,
                name=(client and client.name) or name,
                part=part,
                mime=part.media_type if isinstance(part, ImagePart) else "text/plain",
                standing=client.standing if client else "",
            )
