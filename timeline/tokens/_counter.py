"""Three token counters: as the model counts, in plain o200k tokens, or by a cheap estimate; and the counts of requests."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import attrs

from blocks import MisuseError, Part, checked_calls, did_you_mean, in_words
from render import Json, Model, Provider, provider_of
from timeline.tokens._o200k import CountCache, o200k_tokens, utf8_bytes
from timeline.tokens._parts import flat_part_tokens, part_tokens

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


@lru_cache(maxsize=32)
def counter_for(name: str, model: Model) -> TextCounter:
    """The counter `model`, `o200k` or `estimate`; always the same object, with its cached counts."""
    match name:
        case "model":
            return ModelCounter(model)
        case "o200k":
            return _O200K
        case "estimate":
            return EstimateCounter(model)
        case _:
            near = did_you_mean(name, ("model", "o200k", "estimate"))
            raise MisuseError(
                f"no counter {name!r}{near or '; there are model, o200k and estimate'}"
            )


@attrs.define
class O200kCounter:
    """Plain o200k tokens, with images and pages at a flat rate: the same for every model, for comparisons."""

    name = "o200k"

    def count(self, text: str) -> int:
        return o200k_tokens(text)

    def part(self, part: Part) -> int:
        return flat_part_tokens(part, self.count)


_O200K = O200kCounter()


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
        plain = o200k_tokens(text)
        cjk = plain * _cjk_share(text)
        scaled = round(cjk + (plain - cjk) * self.model.token_factor)
        return min(scaled, utf8_bytes(text))


def _cjk_share(text: str) -> float:
    """The share of a text's o200k tokens that stands for CJK characters."""
    if text.isascii():
        return 0.0
    others = len(_CJK.sub("", text))
    cjk = _CJK_WEIGHT * (len(text) - others)
    return cjk / (cjk + others) if cjk else 0.0


@attrs.define
class EstimateCounter:
    """Counts by classes of characters, in microseconds and without a vocabulary."""

    name = "estimate"
    model: Model

    def count(self, text: str) -> int:
        return estimated(text, self.model.token_factor)

    def part(self, part: Part) -> int:
        return part_tokens(part, self.model, self.count)


def estimated(text: str, factor: float) -> int:
    """Tokens of `text` for a tokenizer with this factor over o200k."""
    data = text.encode("utf-8", "surrogatepass")
    scaled = sum(weight * _among(data, members) for weight, members in _SCALED)
    tokens = round(scaled * factor + _among(data, _UNSCALED))
    return min(max(tokens, min(len(data), 1)), len(data))


def _among(data: bytes, members: bytes) -> int:
    """The number of bytes of `data` that are in `members`."""
    return len(data) - len(data.translate(None, members))


# Content that is not from a timeline, in the shapes of one API


@attrs.frozen(kw_only=True)
class RequestTokens:
    """The tokens of a request, by part."""

    system: int
    tools: int
    """Tokens of the tools, including what the provider adds to explain them."""
    messages: int
    known: bool = True
    """False: the model is not in a table, and the count is a guess."""

    @property
    def total(self) -> int:
        """All parts together."""
        return self.system + self.tools + self.messages


def _counter_of(given: "RequestCounter") -> TextCounter:
    return counter_for("model", given.model)


@checked_calls()
@attrs.frozen
class RequestCounter:
    """Counts, offline, the tokens of requests to one model's API, as a render does.

    Requests have the shape of the API that serves the model; objects of its SDK are also accepted.
    """

    model: Model
    counter: TextCounter = attrs.field(
        default=attrs.Factory(_counter_of, takes_self=True), kw_only=True
    )

    @property
    def provider(self) -> Provider:
        """The provider whose requests are counted.

        Raises:
            MisuseError: the shape of the provider's requests is not known.
        """
        return provider_of(self.model)

    def text(self, text: str) -> int:
        """Tokens of a text alone, without the overhead of a message."""
        return self.counter.count(text)

    def tool(self, tool: Mapping[str, Any]) -> int:
        """Tokens of one tool definition.

        Raises:
            MisuseError: it is not an object.
        """
        return self._tokens((), [_object(tool)], ())

    def message(self, message: Mapping[str, Any]) -> int:
        """Tokens of one message, or of one item of input.

        Raises:
            MisuseError: it is not a message of this API.
        """
        return self._tokens((), (), [_object(message)])

    def request(self, request: Mapping[str, Any]) -> RequestTokens:
        """Tokens of a whole request: the keyword arguments of the client's method. Other arguments are not counted.

        Raises:
            MisuseError: it is not a request of this API.
        """
        system, tools, messages = self.provider.sections(_object(request))
        explained = tools and self.counter.name == "model"
        return RequestTokens(
            system=self._tokens(system, (), ()),
            tools=self._tokens((), tools, ())
            + (self.model.tool_overhead_tokens if explained else 0),
            messages=self._tokens((), (), messages),
            known=self.model.known,
        )

    def _tokens(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> int:
        provider, counter = self.provider, self.counter
        try:
            contents = provider.contents(system, tools, messages)
            return sum(provider.segment(place, each).tokens(counter) for place, each in contents)
        except (AttributeError, KeyError, TypeError, ValueError) as wrong:
            raise MisuseError(
                f"this is not a request for {provider.name!r}, the provider of model {self.model.name!r}: {wrong}"
            ) from wrong


def _object(request: Mapping[str, Any]) -> dict[str, Any]:
    plain = _json_form(request)
    if not isinstance(plain, dict):
        raise MisuseError(f"expected an object of the API to count, not {in_words(request)}")
    return cast("dict[str, Any]", plain)


def _json_form(value: Any) -> Any:
    """A value in its JSON form; objects of an SDK are converted."""
    if isinstance(value, Mapping):
        return {key: _json_form(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_json_form(each) for each in cast("Sequence[Any]", value)]
    for name in ("to_dict", "model_dump"):
        if callable(dump := getattr(value, name, None)) and not isinstance(value, type):
            return _json_form(dump())
    return value
