"""Encryption at rest: the protocol of a key ring, and how a slot is encrypted with a key.

Every slot gets a key of its own, derived (HKDF-SHA256) from the caller's key, the slot's 16 random
bytes and the tenant.  So a counter suffices as nonce, and a piece can be decrypted only at its own place in its
own slot.  The artifact's id is known only after the last piece; it and the rest of the
metadata are authenticated by the *seal*, a tag over the metadata under the same key.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import attrs

from blocks import MisuseError

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


def _is_one_of_them(ring: "Keys", _: object, current: str) -> None:
    if ring.key(current) is None:
        raise MisuseError(f"the current key {current!r} is not among the keys")


def _are_keys(_: object, __: object, keys: Mapping[str, bytes]) -> None:
    for key_id, key in keys.items():
        if not key_id or len(key) != KEY_BYTES:
            raise MisuseError(f"key {key_id!r}: a key has a name and exactly {KEY_BYTES} bytes")


def _copied(keys: Mapping[str, bytes]) -> dict[str, bytes]:
    return dict(keys)


@attrs.frozen
class Keys:
    """A key ring in memory: `Keys({"k1": secrets.token_bytes(32)}, current="k1")`.

    Raises:
        MisuseError: a key has no name, or not 32 bytes; or the current key is not one of them.
    """

    _keys: dict[str, bytes] = attrs.field(converter=_copied, repr=False, validator=_are_keys)
    current: str = attrs.field(kw_only=True, validator=_is_one_of_them)

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

    def seal(self, said: bytes) -> str:
        return self._aead.encrypt(_SEAL_NONCE, b"", said).hex()

    def vouches(self, said: bytes, seal: str) -> bool:
        """Whether `seal` was made with this key for exactly this metadata."""
        return (
            self._tried(lambda: self._aead.decrypt(_SEAL_NONCE, bytes.fromhex(seal), said))
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
        raise needs_extra("encryption") from error
    about = b"foldline artifact\0" + tenant.encode()
    derived = HKDF(SHA256(), KEY_BYTES, salt=bytes.fromhex(slot), info=about).derive(key)
    return Cipher(AESGCM(derived), tenant.encode())


def needs_extra(what: str) -> MisuseError:
    """The error for a missing library."""
    return MisuseError(f"{what} needs an extra: pip install 'foldline[artifacts]'")


def _nonce(number: int) -> bytes:
    return number.to_bytes(NONCE_BYTES, "big")
