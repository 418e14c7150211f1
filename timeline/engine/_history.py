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

FORM: Final = "1"
"""How the hash of a history begins; one of another form could not be compared."""
Own: TypeAlias = Thought | Verbatim
"""What only a provider reads: a program may drop it, so it is not compared."""
Piece: TypeAlias = Message | Said | Call | Result
"""What is one block; a message: all parts of what a user, or the system, said in it."""


@attrs.frozen(kw_only=True)
class Step:
    """One piece of a history."""

    number: int
    """Index of its message in the list that was given."""
    message: Message
    own: tuple[Own, ...]
    """What only a provider reads, just before it."""
    piece: Piece | None
    """None: the history ends in what only a provider reads."""


@attrs.frozen(kw_only=True)
class History:
    """A foreign history.

    It is compared piece by piece and not by messages: a message that has one result today may have two
    tomorrow.
    """

    steps: tuple[Step, ...]
    chain: tuple[str, ...]
    """For each number of pieces from the beginning: the hash of them all."""
    system: str
    """What it has at its beginning for the system prompt; empty: nothing."""
    messages: int
    """How many of its messages say anything."""
    after: int = 0
    """Version of the timeline behind which it begins."""

    def number(self, step: int) -> int:
        """Index of the message of a step in the list that was given; behind the last step: the next one."""
        if step < len(self.steps):
            return self.steps[step].number
        return self.steps[-1].number + 1 if self.steps else 0

    def agrees(self, count: int) -> Agreed:
        """The hash of its first pieces, with their number."""
        return Agreed(pieces=count, chain=self.chain[count])

    def is_like(self, mark: Agreed) -> bool:
        """Whether a mark is of a history that begins where this one does."""
        return mark.chain.startswith(self.chain[0])

    def is_at(self, mark: Agreed | None) -> bool:
        """Whether it begins with what a mark stands for."""
        return mark is not None and (
            mark.pieces < len(self.chain) and self.chain[mark.pieces] == mark.chain
        )


def history_of(messages: object, format: Format, after: int = 0) -> History:  # noqa: A002 -- as everywhere
    """The history that a list of messages is, beginning behind a version of a timeline.

    Raises:
        ArgumentError: it is none, or one of the messages is none.
        CodecError: one holds a value that cannot be stored.
    """
    reader = HistoryReader(format=format, after=after)
    reader.add(messages)
    return reader.history()


@attrs.define(kw_only=True)
class HistoryReader:
    """Reads a history that grows: what was read once is not read again."""

    format: Format
    after: int = 0
    """Version of the timeline behind which it begins."""
    _steps: list[Step] = attrs.field(factory=list[Step], init=False)
    _chain: list[str] = attrs.field(init=False)
    _digest: bytes = attrs.field(default=b"", init=False)
    _own: list[Own] = attrs.field(factory=list[Own], init=False)
    """What only a provider reads, and no step has yet."""
    _last: tuple[int, Message] | None = attrs.field(default=None, init=False)
    _system: list[str] = attrs.field(factory=list[str], init=False)
    _newest: str = attrs.field(default="", init=False)
    _count: int = attrs.field(default=0, init=False)
    """Messages that were read."""
    _telling: int = attrs.field(default=0, init=False)
    """Of these, how many have a step."""

    def __attrs_post_init__(self) -> None:
        self._chain = [f"{FORM}@{self.after}:" if self.after else f"{FORM}:"]

    def add(self, messages: object) -> None:
        """Read further messages.

        Raises:
            ArgumentError: they are no list of messages of the format; it says which one is none.
            CodecError: one holds a value that cannot be stored.
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
        """All of it, as far as it was read."""
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
        """Whether the message of this index has no step yet; steps come in the order of their messages."""
        return not self._steps or self._steps[-1].number != number


def _pieces(message: Message) -> Iterator[Piece | Own]:
    """What a message is in the log, block for block; results come first."""
    for content in message.content:
        if isinstance(content, Said | Call | Result | Thought | Verbatim):
            yield content
    if parts := parts_in(message.content):
        yield attrs.evolve(message, content=tuple(parts))


def _content(piece: Piece) -> bytes:
    """What a piece says; not under which id, which a program may give anew."""
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
