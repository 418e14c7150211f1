"""How content is stored: in pieces of equal size, and encrypted, with a key from a key ring.

Every slot gets a key of its own, derived (HKDF-SHA256) from the caller's key, the slot's 16 random
bytes and the tenant.  So a counter suffices as nonce, and a piece can be decrypted only at its own place in its
own slot.  The artifact's id is known only after the last piece; it and the rest of the
metadata are authenticated by the *seal*, a tag over the metadata under the same key.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import attrs

from blocks import MisuseError, lacking
from persistence.artifacts._store import PIECE_BYTES, ArtifactMetadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
SLOT_BYTES = 16
_SEAL_NONCE = b"\xff" * NONCE_BYTES
"""The nonce of a seal; no piece has this number."""


class KeyRing(Protocol):
    """The encryption keys of the caller. Destroying a key makes all content encrypted with it unreadable."""

    @property
    def current(self) -> str:
        """The id of the key for new content."""
        ...

    def key(self, key_id: str) -> bytes | None:
        """The 32 bytes of a key, or None if there is no such key."""
        ...


def _copy(keys: Mapping[str, bytes]) -> dict[str, bytes]:
    return dict(keys)


@attrs.frozen
class Keys:
    """A key ring in memory: `Keys({"k1": secrets.token_bytes(32)}, current="k1")`.

    Raises:
        MisuseError: a key has no name, or not 32 bytes; or the current key is not one of them.
    """

    _keys: dict[str, bytes] = attrs.field(converter=_copy, repr=False)
    current: str = attrs.field(kw_only=True)

    def __attrs_post_init__(self) -> None:
        for key_id, key in self._keys.items():
            if not key_id or len(key) != KEY_BYTES:
                raise MisuseError(
                    f"key {key_id!r}: a key must have a name and exactly {KEY_BYTES} bytes"
                )
        if self.current not in self._keys:
            raise MisuseError(f"the current key {self.current!r} is not among the keys")

    def key(self, key_id: str) -> bytes | None:
        """The 32 bytes of a key, or None."""
        return self._keys.get(key_id)


@attrs.frozen
class Cipher:
    """Encrypts and decrypts the pieces of one slot, and seals its metadata."""

    _aead: "AESGCM" = attrs.field(repr=False)
    _tenant: bytes

    def sealed(self, number: int, piece: bytes) -> bytes:
        return self._aead.encrypt(_nonce(number), piece, self._tenant)

    def opened(self, number: int, piece: bytes) -> bytes | None:
        """The decrypted piece; None if this is not piece `number` of this slot."""
        return self._tried(lambda: self._aead.decrypt(_nonce(number), piece, self._tenant))

    def seal(self, metadata: bytes) -> str:
        return self._aead.encrypt(_SEAL_NONCE, b"", metadata).hex()

    def vouches(self, metadata: bytes, seal: str) -> bool:
        """Whether `seal` was made with this key for exactly this metadata."""
        return (
            self._tried(lambda: self._aead.decrypt(_SEAL_NONCE, bytes.fromhex(seal), metadata))
            is not None
        )

    @staticmethod
    def _tried(decrypt: Callable[[], bytes]) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            return decrypt()
        except (InvalidTag, ValueError):  # ValueError: shorter than a tag, or not hexadecimal
            return None


def cipher_for(key: bytes, slot: str, tenant: str) -> Cipher:
    """The cipher for a slot of a tenant.

    Raises:
        MisuseError: the library for encryption is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise lacking("encryption", "artifacts") from error
    about = b"foldline artifact\0" + tenant.encode()
    derived = HKDF(SHA256(), KEY_BYTES, salt=bytes.fromhex(slot), info=about).derive(key)
    return Cipher(AESGCM(derived), tenant.encode())


def _nonce(number: int) -> bytes:
    return number.to_bytes(NONCE_BYTES, "big")


# The pieces of a content.


def plain_bytes(*, is_encrypted: bool) -> int:
    """Bytes of content in one piece; an encrypted piece also has a tag."""
    return PIECE_BYTES - TAG_BYTES if is_encrypted else PIECE_BYTES


def pieces_of(about: ArtifactMetadata) -> int:
    """The number of pieces in which a content is stored."""
    return -(-about.size // plain_bytes(is_encrypted=bool(about.key)))


def as_pieces(content: Iterable[bytes], cipher: Cipher | None) -> Iterator[bytes]:
    """The pieces as they are stored, encrypted if there is a cipher."""
    plain = in_pieces(content, plain_bytes(is_encrypted=cipher is not None))
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
