"""Three token counters: as the model counts, in plain o200k tokens, or by a cheap estimate."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Protocol, TypeAlias

import attrs

from blocks import MisuseError, Part, did_you_mean
from render import Model
from timeline.tokens._chunks import (
    CHUNK_CHARS_MAX,
    EXACT_BYTES_MAX,
    chunks,
    lines,
    utf8_bytes,
)
from timeline.tokens._parts import flat_part_tokens, part_tokens
from timeline.tokens._ranks import o200k

_DIGEST_CHARS_MIN = 512
"""Texts that are shorter are keys themselves, because a digest would take more time and memory."""

Key: TypeAlias = str | bytes


@attrs.define
class CountCache:
    """A bounded cache with two generations: when the younger one is full, it replaces the older one, and a new one
    starts empty.

    Recently used entries are always in one of them. Threads need no lock, because every step is one operation on one
    dict, and a lost entry is only counted again.
    """

    entries_max: int = 65_536
    _young: dict[Key, int] = attrs.field(init=False, factory=dict[Key, int])
    _old: dict[Key, int] = attrs.field(init=False, factory=dict[Key, int])

    def get(self, text: str, count: Callable[[str], int]) -> int:
        """The count of `text`, computed by `count` if it is not cached."""
        key = text if len(text) < _DIGEST_CHARS_MIN else _digest(text)
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            if tokens is None:
                tokens = count(text)
            if len(self._young) >= self.entries_max // 2:
                self._old, self._young = self._young, {}
            self._young[key] = tokens
        return tokens

    def total(self, texts: Sequence[str], count: Callable[[str], int]) -> int:
        """The sum of the counts of `texts`."""
        known = list(map(self._young.get, texts))  # finds those that are keys themselves
        others = (text for text, tokens in zip(texts, known, strict=True) if tokens is None)
        return sum(filter(None, known)) + sum(self.get(text, count) for text in others)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


_plain = CountCache()
"""o200k tokens of texts and of lines."""
_SCALED = (
    (0.20, bytes(range(ord("a"), ord("z") + 1))),
    (1.00, bytes(range(ord("A"), ord("Z") + 1))),
    (0.85, bytes(range(ord("0"), ord("9") + 1))),
    (0.02, b" \t"),
    (0.20, b"\r\n"),
    (0.45, bytes(code for code in range(33, 127) if not chr(code).isalnum())),
    (0.55, bytes(range(0xC0, 0xE0))),  # first byte of two: Cyrillic, Greek, accents
    (2.00, bytes(range(0xF0, 0x100))),  # first byte of four: emoji
    (1.00, bytes((*range(9), 11, 12, *range(14, 32), 127))),  # control characters
)
_UNSCALED = bytes(range(0xE0, 0xF0))
"""First byte of three: CJK, about one token a character under every tokenizer."""


def estimated(text: str, factor: float) -> int:
    """Tokens of `text` for a tokenizer with this factor over o200k."""
    data = text.encode("utf-8", "surrogatepass")
    scaled = sum(weight * _among(data, members) for weight, members in _SCALED)
    tokens = round(scaled * factor + _among(data, _UNSCALED))
    return min(max(tokens, min(len(data), 1)), len(data))


def _among(data: bytes, members: bytes) -> int:
    """The number of bytes of `data` that are in `members`."""
    return len(data) - len(data.translate(None, members))


_CJK = re.compile(
    "[\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)
_CJK_WEIGHT = 3
"""Under o200k a CJK character costs about as much as three letters (0.75 tokens against 0.25)."""


class TextCounter(Protocol):
    """Counts the tokens of texts and of other parts."""

    @property
    def name(self) -> str:
        """The counter's name in reports."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def part(self, part: Part) -> int:
        """Tokens of an image, a document, or a provider's own part."""
        ...


@attrs.define
class O200kCounter:
    """Plain o200k tokens, with images and pages at a flat rate: the same for every model, for comparisons."""

    name = "o200k"

    def count(self, text: str) -> int:
        return _plain.get(text, count_o200k)

    def part(self, part: Part) -> int:
        return flat_part_tokens(part, self.count)


@attrs.define
class ModelCounter:
    """o200k tokens times the factor of the model's tokenizer, and the model's rules for images and pages.

    The tokenizer of these models is private.  CJK text costs about what it costs under o200k
    (public comparisons: factor 1.0), so the factor is applied only to the rest of a text.
    """

    name = "model"
    model: Model
    _counts: CountCache = attrs.field(init=False, factory=CountCache)

    def count(self, text: str) -> int:
        return self._counts.get(text, self._scaled)

    def part(self, part: Part) -> int:
        return part_tokens(part, self.model, self.count)

    def _scaled(self, text: str) -> int:
        plain = _plain.get(text, count_o200k)
        cjk = plain * _cjk_share(text)
        scaled = round(cjk + (plain - cjk) * self.model.token_factor)
        return min(scaled, utf8_bytes(text))


@attrs.define
class EstimateCounter:
    """Counts by classes of characters, in microseconds and without a vocabulary."""

    name = "estimate"
    model: Model

    def count(self, text: str) -> int:
        return estimated(text, self.model.token_factor)

    def part(self, part: Part) -> int:
        return part_tokens(part, self.model, self.count)


@lru_cache(maxsize=32)
def counter_for(name: str, model: Model) -> TextCounter:
    """The counter `model`, `o200k` or `estimate`; always the same object, with its cached counts."""
    match name:
        case "model":
            return ModelCounter(model)
        case "o200k":
            return _o200k_counter()
        case "estimate":
            return EstimateCounter(model)
        case _:
            near = did_you_mean(name, ("model", "o200k", "estimate"))
            raise MisuseError(
                f"no counter {name!r}{near or '; there are model, o200k and estimate'}"
            )


@lru_cache(maxsize=1)
def _o200k_counter() -> O200kCounter:
    return O200kCounter()


def count_o200k(text: str) -> int:
    """o200k tokens of `text`; above `EXACT_BYTES_MAX` its length in bytes, which is an upper bound.

    Each line is counted once, wherever it occurs: agents read the same files again, and an index consists of
    lines of texts that were counted before.
    """
    if len(text) * 4 > EXACT_BYTES_MAX and (size := utf8_bytes(text)) > EXACT_BYTES_MAX:
        return size
    if len(text) > CHUNK_CHARS_MAX:
        return sum(map(_encoded, chunks(text)))
    found = lines(text)
    return _plain.total(found, _encoded) if len(found) > 1 else _encoded(text)


def _encoded(text: str) -> int:
    # Text that looks like a control token is ordinary text here. A longer text could end in a panic that is
    # not an `Exception` (openai/tiktoken#245); `CHUNK_CHARS_MAX` characters cannot.
    return len(o200k().encode_ordinary(text))


def _cjk_share(text: str) -> float:
    """The share of a text's o200k tokens that stands for CJK characters."""
    if text.isascii():
        return 0.0
    others = len(_CJK.sub("", text))
    cjk = _CJK_WEIGHT * (len(text) - others)
    return cjk / (cjk + others) if cjk else 0.0
