"""Content in pieces of equal size: splitting it, and finding the pieces that a range needs."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Protocol

import attrs

from blocks import MisuseError
from persistence.artifacts._backend import PIECE_BYTES
from persistence.artifacts._crypt import TAG_BYTES, Cipher


class Hash(Protocol):
    """The methods of a `hashlib` hash that are used here."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@attrs.define(eq=False)
class Hashed:
    """Passes content on in chunks; once all have passed, it knows size and hash."""

    _chunks: Iterable[bytes]
    size: int = attrs.field(default=0, init=False)
    _hash: Hash = attrs.field(factory=sha256, init=False)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            self._hash.update(chunk)
            yield chunk

    def digest(self) -> str:
        return self._hash.hexdigest()


def plain_bytes(cipher: Cipher | None) -> int:
    """Bytes of content in one piece; an encrypted piece also has a tag."""
    return PIECE_BYTES - TAG_BYTES if cipher else PIECE_BYTES


def as_pieces(content: Iterable[bytes], cipher: Cipher | None) -> Iterator[bytes]:
    """The pieces as they are stored, encrypted if there is a cipher."""
    plain = in_pieces(content, plain_bytes(cipher))
    if cipher is None:
        return plain
    return (cipher.sealed(number, piece) for number, piece in enumerate(plain))


def in_pieces(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of `size` bytes; only the last may be shorter, none is empty."""
    waiting = bytearray()
    for chunk in chunks:
        for start in range(0, len(chunk), size):
            waiting += chunk[start : start + size]
            if len(waiting) >= size:
                yield bytes(waiting[:size])
                del waiting[:size]
    if waiting:
        yield bytes(waiting)


@attrs.frozen
class Span:
    """The bytes from `start` up to `stop` of a content stored in pieces of `piece` bytes."""

    start: int
    stop: int
    piece: int

    @classmethod
    def of(cls, total: int, start: int, size: int | None, piece: int) -> "Span":
        """The span of `size` bytes from `start`, cut to the content's `total` bytes; None: to its end.

        Raises:
            MisuseError: `start` or `size` is negative.
        """
        if start < 0 or (size is not None and size < 0):
            raise MisuseError(f"start={start}, size={size}: read from 0 or more, 0 bytes or more")
        first = min(start, total)
        return cls(first, total if size is None else min(first + size, total), piece)

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def first(self) -> int:
        """The number of the first piece of the span."""
        return self.start // self.piece

    @property
    def last(self) -> int:
        """The number of the last piece of the span; lower than `first` if the span is empty."""
        return (self.stop - 1) // self.piece if self.size else self.first - 1

    def trimmed(self, number: int, piece: bytes) -> bytes:
        """The bytes of piece `number` that belong to the span."""
        at = number * self.piece
        return piece[max(self.start - at, 0) : self.stop - at]
