"""Counts by content, so that a text is encoded once in its life."""

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

import attrs

_DIGEST_CHARS_MIN = 512
"""Shorter texts are their own key: a digest would cost and weigh more."""

Key: TypeAlias = str | bytes


@attrs.define
class CountCache:
    """Two generations: the younger fills up, takes the elder's place, and starts empty.

    What was asked for recently is always in one of them, the size is bounded, and threads need no
    lock: every step is one operation on one dict, and a lost entry is only counted again.
    """

    entries_max: int = 65_536
    _young: dict[Key, int] = attrs.field(init=False, factory=dict[Key, int])
    _old: dict[Key, int] = attrs.field(init=False, factory=dict[Key, int])

    def get(self, text: str, count: Callable[[str], int]) -> int:
        """The count of `text`, by `count` when it is not known."""
        key = _key(text)
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            tokens = count(text) if tokens is None else tokens
            self._keep(key, tokens)
        return tokens

    def _keep(self, key: Key, tokens: int) -> None:
        if len(self._young) >= self.entries_max // 2:
            self._old, self._young = self._young, {}
        self._young[key] = tokens


def _key(text: str) -> Key:
    if len(text) < _DIGEST_CHARS_MIN:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
