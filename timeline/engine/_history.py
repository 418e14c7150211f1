"""A foreign history: its contents, piece by piece; its system prompt; and a hash of each of its prefixes."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, TypeAlias

import attrs
import msgspec

from blocks import Agreed, text_of_parts
from blocks.formats import (
    Call,
    Format,
    Message,
    Result,
    Said,
    Thought,
    Verbatim,
    messages_from,
    parts_in,
)
from timeline.engine._withholding import Hides

FORM: Final = "1"
"""The prefix of the hash of a history; hashes with different prefixes are not comparable."""
Own: TypeAlias = Thought | Verbatim
"""Content that only a provider reads. It is not compared, because a program may drop it."""
Piece: TypeAlias = Message | Said | Call | Result
"""Content that becomes one block. A `Message` holds all parts of a message by the user or the system."""


@attrs.frozen(kw_only=True)
class Step:
    """One piece of a history, with the content before it that only a provider reads."""

    number: int
    """Index of its message in the given list."""
    message: Message
    own: tuple[Own, ...]
    """The content just before it that only a provider reads."""
    piece: Piece | None
    """The piece; None: the history ends with content that only a provider reads."""


@attrs.frozen(kw_only=True)
class History:
    """The history of another program's conversation.

    Histories are compared piece by piece and not by messages, because a message that has one result now may have two
    later.
    """

    steps: tuple[Step, ...]
    chain: tuple[str, ...]
    """For each number of pieces, from 0: the hash of that many pieces."""
    system: str
    """The system prompt at its beginning; empty: none."""
    messages: int
    """Number of messages with content."""
    after: int = 0
    """The timeline's version after which the history begins."""
    hides: Hides = attrs.field(factory=Hides)
    """What is hidden on request where the program has been so far, if that is not the timeline that is synced."""

    def number(self, step: int) -> int:
        """Index in the given list of a step's message; for the number after the last step, the next index."""
        if step < len(self.steps):
            return self.steps[step].number
        return self.steps[-1].number + 1 if self.steps else 0

    def agrees(self, count: int) -> Agreed:
        """The mark for the first `count` pieces."""
        return Agreed(pieces=count, chain=self.chain[count])

    def is_like(self, mark: Agreed) -> bool:
        """Whether a mark is of a history with the same hash form and the same starting version."""
        return mark.chain.startswith(self.chain[0])

    def is_at(self, mark: Agreed | None) -> bool:
        """Whether the history begins with the pieces that a mark stands for."""
        return mark is not None and (
            mark.pieces < len(self.chain) and self.chain[mark.pieces] == mark.chain
        )


def history_of(messages: object, format: Format, after: int = 0) -> History:  # noqa: A002 -- as everywhere
    """The history in a list of messages that begins after version `after` of a timeline.

    Raises:
        ArgumentError: it is not a list of messages of this format.
        CodecError: a message holds a value that cannot be stored.
    """
    reader = HistoryReader(format=format, after=after)
    reader.add(messages)
    return reader.history()


@attrs.define(kw_only=True)
class HistoryReader:
    """Reads a growing history; each message is read once."""

    format: Format
    after: int = 0
    """The timeline's version after which the history begins."""
    _steps: list[Step] = attrs.field(factory=list[Step], init=False)
    _chain: list[str] = attrs.field(init=False)
    _digest: bytes = attrs.field(default=b"", init=False)
    _own: list[Own] = attrs.field(factory=list[Own], init=False)
    """Content that only a provider reads, to be attached to the next step."""
    _last: tuple[int, Message] | None = attrs.field(default=None, init=False)
    _system: list[str] = attrs.field(factory=list[str], init=False)
    _newest: str = attrs.field(default="", init=False)
    _count: int = attrs.field(default=0, init=False)
    """Number of messages that were read."""
    _telling: int = attrs.field(default=0, init=False)
    """Number of these messages that have a step."""

    def __attrs_post_init__(self) -> None:
        self._chain = [f"{FORM}@{self.after}:" if self.after else f"{FORM}:"]

    def add(self, messages: object) -> None:
        """Read further messages.

        Raises:
            ArgumentError: it is not a list of messages of this format; the error names the wrong one.
            CodecError: a message holds a value that cannot be stored.
        """
        for read in messages_from(messages, self.format):
            for message in read:
                self._newest = message.instructions or self._newest
                if message.role == "system" and self._last is None:
                    self._system.append(text_of_parts(parts_in(message.content)))
                elif message.content:
                    self._say(message)
            self._count += 1

    def history(self) -> History:
        """The history of all messages that were read so far."""
        steps, telling = tuple(self._steps), self._telling
        if self._last and self._own:
            number, message = self._last
            telling += self._is_first_of(number)
            steps += (Step(number=number, message=message, own=tuple(self._own), piece=None),)
        return History(
            steps=steps,
            chain=tuple(self._chain),
            system="\n\n".join(text for text in (*self._system, self._newest) if text.strip()),
            messages=telling,
            after=self.after,
        )

    def _say(self, message: Message) -> None:
        for piece in _pieces(message):
            self._last = self._count, message
            if isinstance(piece, Thought | Verbatim):
                self._own.append(piece)
                continue
            step = Step(number=self._count, message=message, own=tuple(self._own), piece=piece)
            self._telling += self._is_first_of(self._count)
            self._steps.append(step)
            self._own.clear()
            self._digest = sha256(self._digest + _content(piece)).digest()
            self._chain.append(f"{self._chain[0]}{self._digest.hex()[:32]}")

    def _is_first_of(self, number: int) -> bool:
        """Whether no step of the message with this index was added yet; steps are in the order of the messages."""
        return not self._steps or self._steps[-1].number != number


def _pieces(message: Message) -> Iterator[Piece | Own]:
    """The pieces of a message, one per block; tool results come first."""
    for content in message.content:
        if isinstance(content, Said | Call | Result | Thought | Verbatim):
            yield content
    if parts := parts_in(message.content):
        yield attrs.evolve(message, content=tuple(parts))


def _content(piece: Piece) -> bytes:
    """The content of a piece as JSON, without ids that a program may change."""
    match piece:
        case Message(role=role, content=content):
            said: object = (role, content)
        case Said(text=text):
            said = ("said", text)
        case Call(call_id=call_id, name=name, input=asked):
            said = ("call", call_id, name, asked)
        case Result(call_id=call_id, parts=parts, is_error=is_error):
            said = ("result", call_id, parts, is_error)
    return msgspec.json.encode(said)
