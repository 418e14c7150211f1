"""A foreign history: what it says, piece by piece; what it has for the system prompt; and a hash for each of its
beginnings."""

from collections.abc import Iterable, Iterator
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
        """The mark of so many of its pieces."""
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
        CodecError: one holds what cannot be stored.
    """
    said: list[tuple[int, Message]] = []
    system: list[str] = []
    newest = ""
    for number, read in enumerate(messages_from(messages, format)):
        for message in read:
            newest = message.instructions or newest
            if message.role == "system" and not said:
                system.append(text_of_parts(parts_in(message.content)))
            elif message.content:
                said.append((number, message))
    steps = tuple(_steps(said))
    return History(
        steps=steps,
        chain=tuple(_chain(steps, f"{FORM}@{after}:" if after else f"{FORM}:")),
        system="\n\n".join(text for text in (*system, newest) if text.strip()),
        messages=len({step.number for step in steps}),
        after=after,
    )


def _steps(said: Iterable[tuple[int, Message]]) -> Iterator[Step]:
    own: list[Own] = []
    last: tuple[int, Message] | None = None
    for number, message in said:
        for piece in _pieces(message):
            last = number, message
            if isinstance(piece, Thought | Verbatim):
                own.append(piece)
                continue
            yield Step(number=number, message=message, own=tuple(own), piece=piece)
            own = []
    if last and own:
        yield Step(number=last[0], message=last[1], own=tuple(own), piece=None)


def _pieces(message: Message) -> Iterator[Piece | Own]:
    """What a message is in the log, block for block; results come first."""
    for content in message.content:
        if isinstance(content, Said | Call | Result | Thought | Verbatim):
            yield content
    if parts := parts_in(message.content):
        yield attrs.evolve(message, content=tuple(parts))


def _chain(steps: Iterable[Step], form: str) -> Iterator[str]:
    digest = b""
    yield form
    for step in steps:
        if step.piece is not None:
            digest = sha256(digest + _content(step.piece)).digest()
            yield form + digest.hex()[:32]


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
