"""A compact filter of the foreign ids in the folded part of a log."""

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Final

_NAMES: Final = 256
"""Names in one generation."""
_BYTES: Final = 448
"""Bytes of one generation: of 1,000 names that are not in it, it seems to contain one."""
_NUMBERS: Final = Struct(">8H")
"""The part of a name's hash that gives its places in a generation."""
GENERATIONS_MAX: Final = 16
"""So the newest 4,096 names are remembered; of 100 others, the filter seems to contain two."""


class Sources:
    """A filter of names: it contains all names that were added recently, and a few others by chance."""

    __slots__ = ("_count", "_generations")

    def __init__(self, encoded: str = "") -> None:
        """Read the text that `encoded` returned; any other text gives an empty filter."""
        count, _, rest = encoded.partition(":")
        try:
            found = [bytearray(b64decode(bits, validate=True)) for bits in rest.split(":") if bits]
            self._count = int(count) if found else _NAMES
        except ValueError:
            found, self._count = [], _NAMES
        whole = (bits for bits in found if len(bits) == _BYTES)
        self._generations = deque(whole, maxlen=GENERATIONS_MAX)

    def add(self, names: Iterable[str]) -> None:
        """Add names; the oldest names may be removed to make room."""
        for name in names:
            places = _places(name)
            if self._generations and _has(self._generations[-1], places):
                continue
            if self._count >= _NAMES or not self._generations:
                self._generations.append(bytearray(_BYTES))
                self._count = 0
            self._count += 1
            for place in places:
                self._generations[-1][place >> 3] |= 1 << (place & 7)

    def __contains__(self, name: str) -> bool:
        places = _places(name)
        return any(_has(bits, places) for bits in self._generations)

    def encoded(self) -> str:
        """The filter as text; empty if it has no names."""
        if not self._generations:
            return ""
        return ":".join((str(self._count), *(b64encode(b).decode() for b in self._generations)))


def _has(bits: bytearray, places: list[int]) -> bool:
    return all(bits[place >> 3] & 1 << (place & 7) for place in places)


def _places(name: str) -> list[int]:
    digest = sha256(name.encode(errors="surrogatepass")).digest()
    return [number % (8 * _BYTES) for number in _NUMBERS.unpack_from(digest)]
