"""Three ways to count: as the model would, in plain o200k tokens, or by a cheap estimate."""

import re
from functools import lru_cache
from typing import Protocol

import attrs

from blocks import MisuseError, Part, did_you_mean
from render import Model
from timeline.tokens._cache import CountCache
from timeline.tokens._chunks import CHUNK_CHARS_MAX, EXACT_BYTES_MAX, chunks, utf8_bytes
from timeline.tokens._estimate import estimated
from timeline.tokens._parts import flat_part_tokens, part_tokens
from timeline.tokens._ranks import o200k

_CJK = re.compile(
    "[\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)
_CJK_WEIGHT = 3
"""Under o200k a CJK character costs about as much as three letters (0.75 tokens against 0.25)."""


class TextCounter(Protocol):
    """Counts the tokens of a text, and of what is no text."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...

    def part(self, part: Part) -> int: ...


@attrs.define
class O200kCounter:
    """Plain o200k tokens, images and pages at a flat rate: the same for every model, to compare."""

    name = "o200k"
    _counts: CountCache = attrs.field(init=False, factory=CountCache)

    def count(self, text: str) -> int:
        return self._counts.get(text, count_o200k)

    def part(self, part: Part) -> int:
        return flat_part_tokens(part, self.count)


@attrs.define
class ModelCounter:
    """o200k tokens times the factor of the model's tokenizer; its own rules for images and pages.

    The tokenizer of these models is private.  CJK text costs about what it costs under o200k
    (public comparisons: factor 1.0), so the factor goes to the rest of a text.
    """

    name = "model"
    model: Model
    _counts: CountCache = attrs.field(init=False, factory=CountCache)

    def count(self, text: str) -> int:
        return self._counts.get(text, self._scaled)

    def part(self, part: Part) -> int:
        return part_tokens(part, self.model, self.count)

    def _scaled(self, text: str) -> int:
        plain = count_o200k(text)
        cjk = plain * _cjk_share(text)
        scaled = round(cjk + (plain - cjk) * self.model.token_factor)
        return min(scaled, utf8_bytes(text))


@attrs.define
class EstimateCounter:
    """By classes of characters, in microseconds and without a vocabulary."""

    name = "estimate"
    model: Model

    def count(self, text: str) -> int:
        return estimated(text, self.model.token_factor)

    def part(self, part: Part) -> int:
        return part_tokens(part, self.model, self.count)


@lru_cache(maxsize=32)
def counter_for(name: str, model: Model) -> TextCounter:
    """The counter `model`, `o200k` or `estimate`; asked again, the same one with what it knows."""
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
    """o200k tokens of `text`; above 4 MB its bytes, an upper bound."""
    if len(text) * 4 > EXACT_BYTES_MAX and (size := utf8_bytes(text)) > EXACT_BYTES_MAX:
        return size
    # `disallowed_special=()`: text that looks like a control token is ordinary text here.  Not
    # `encode_ordinary`, which can end in a panic that is no `Exception` (openai/tiktoken#245).
    encode = o200k().encode
    if len(text) <= CHUNK_CHARS_MAX:
        return len(encode(text, disallowed_special=()))
    return sum(len(encode(chunk, disallowed_special=())) for chunk in chunks(text))


def _cjk_share(text: str) -> float:
    """Which share of a text's o200k tokens stands for CJK characters."""
    if text.isascii():
        return 0.0
    others = len(_CJK.sub("", text))
    cjk = _CJK_WEIGHT * (len(text) - others)
    return cjk / (cjk + others) if cjk else 0.0
