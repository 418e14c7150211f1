"""A foreign history: its messages, what it has for the system prompt, and a hash for each of its beginnings."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

import attrs
import msgspec

from blocks import Agreed, text_of_parts
from blocks.formats import Content, Format, Message, Thought, Verbatim, messages_from, parts_in

FORM: Final = "1:"
"""How the hash of a history begins; another form could not be compared."""


@attrs.frozen(kw_only=True)
class Item:
    """One message of a foreign history, without what belongs to the system prompt."""

    number: int
    """Its index in the list that was given."""
    messages: tuple[Message, ...]


@attrs.frozen(kw_only=True)
class History:
    """A foreign history."""

    items: tuple[Item, ...]
    chain: tuple[str, ...]
    """For each number of messages from the beginning: the hash of their contents."""
    system: str
    """What it has at its beginning for the system prompt; empty: nothing."""

    def agrees(self, count: int) -> Agreed:
        """The mark of so many of its messages."""
        return Agreed(messages=count, chain=self.chain[count])

    def is_at(self, mark: Agreed | None) -> bool:
        """Whether it begins with what a mark stands for."""
        return mark is not None and (
            mark.messages < len(self.chain) and self.chain[mark.messages] == mark.chain
        )


def history_of(messages: object, format: Format) -> History:  # noqa: A002 -- as everywhere
    """The history that a list of messages is.

    Raises:
        ArgumentError: it is none, or one of the messages is none.
        CodecError: one holds what cannot be stored.
    """
    items: list[Item] = []
    system: list[str] = []
    newest = ""
    for number, read in enumerate(messages_from(messages, format)):
        own: list[Message] = []
        for message in read:
            newest = message.instructions or newest
            if message.role == "system" and not items and not own:
                system.append(text_of_parts(parts_in(message.content)))
            elif message.content:
                own.append(message)
        if own:
            items.append(Item(number=number, messages=tuple(own)))
    texts = [text for text in (*system, newest) if text.strip()]
    return History(items=tuple(items), chain=tuple(_chain(items)), system="\n\n".join(texts))


def _chain(items: Iterable[Item]) -> Iterator[str]:
    digest = b""
    yield FORM
    for item in items:
        said = [
            (message.role, [content for content in message.content if _is_compared(content)])
            for message in item.messages
        ]
        digest = sha256(digest + msgspec.json.encode(said)).digest()
        yield FORM + digest.hex()[:32]


def _is_compared(content: Content) -> bool:
    """Not what only a provider reads: frameworks drop it."""
    return not isinstance(content, Thought | Verbatim)
