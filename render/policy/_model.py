"""A model, as far as a request, its price and its size depend on it: a value, never a look-up.

The dated table of real models is data outside this package.  What a bare `Model(name=...)` holds are
the safe guesses for a model that nobody described.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs
from attrs.validators import deep_iterable, ge, gt, in_, min_len, optional

from blocks import ArgumentError, checked_calls

CacheKind: TypeAlias = Literal["marks", "prefix"]
"""How a provider is told what to keep: by marks in the request, or not at all: it keeps every prefix."""
ImageRule: TypeAlias = Literal["patches", "budget", "tiles", "flat"]
"""How images are counted: by patches of `image_patch` pixels, `budget`: after scaling down to the most that
there may be; by tiles of 512 pixels; or all alike."""
ThinkingMode: TypeAlias = Literal["adaptive", "between_tools", "disabled", "enabled"]

ThinkingRule: TypeAlias = Literal["bound", "leads", "whole"]
"""What a provider demands of the thinking that is sent back to it:

* `bound`: it stands behind exactly what it stood behind when it was thought;
* `leads`: the message whose calls are being answered begins with it;
* `whole`: that of the current tool loop is there completely, or not at all.
"""


# Not `tuple` itself: as a converter, type checkers would not see what it is a tuple of.
def _modes(modes: Iterable[ThinkingMode]) -> tuple[ThinkingMode, ...]:
    return tuple(modes)


def _seconds(seconds: Iterable[int]) -> tuple[int, ...]:
    return tuple(seconds)


def _prices(prices: Iterable[float]) -> tuple[float, ...]:
    return tuple(prices)


def _price(default: float | None) -> Any:
    return attrs.field(default=default, validator=optional(ge(0)))


def _writes() -> Any:
    return attrs.field(default=(), converter=_prices, validator=deep_iterable(ge(0)))


@checked_calls()
@attrs.frozen(kw_only=True)
class Model:
    """Limits, prices and habits of one model; prices in dollars per million tokens.

    Raises:
        ArgumentError: there is no such field, or one holds what it cannot.
    """

    name: str = attrs.field(validator=min_len(1))
    """As requests name it."""
    aliases: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Other names of the same model, dated ids among them."""
    provider: str = attrs.field(default="anthropic", validator=min_len(1))
    """Which API serves it."""
    known: bool = False
    """False: guesses stand here, and whoever shows a result says so."""

    tokens_window: int = attrs.field(default=128_000, validator=gt(0))
    """What prompt and answer may have together."""
    input_tokens_max: int = attrs.field(default=0, validator=ge(0))
    """What a prompt may have however short the answer; 0: all of the window."""
    output_tokens_max: int = attrs.field(default=32_000, validator=gt(0))
    """What an answer may have."""
    tool_overhead_tokens: int = attrs.field(default=675, validator=ge(0))
    """What the provider adds to the system prompt as soon as a request has tools."""

    cache_kind: CacheKind | None = attrs.field(
        default=None, validator=optional(in_(get_args(CacheKind)))
    )
    """None: as the provider's models mostly are."""
    cache_tokens_min: int = attrs.field(default=4_096, validator=ge(0))
    """A shorter prefix is silently not cached."""
    cache_marks: int = attrs.field(default=4, validator=ge(0))
    """Marks that one request may have."""
    cache_lookback: int = attrs.field(default=20, validator=ge(0))
    """Positions, a mark's own the first, in which what an earlier request wrote is found; 0: no limit."""
    cache_ttls: tuple[int, ...] = attrs.field(
        default=(300, 3_600), converter=_seconds, validator=deep_iterable(gt(0))
    )
    """Seconds for which what is written may be kept; the first unless a mark says another."""

    tokenizer: str = attrs.field(default="new", validator=min_len(1))
    """Which vocabulary it has, by the name that the table of models gives it."""
    token_factor: float = attrs.field(default=1.5, validator=gt(0))
    """Tokens of this model per o200k token of ordinary text."""
    image_rule: ImageRule = attrs.field(default="patches", validator=in_(get_args(ImageRule)))
    """How the tokens of an image are worked out."""
    image_tokens_max: int = attrs.field(default=4_784, validator=gt(0))
    """Of one image, before `image_factor`; of all images, where they cost the same."""
    image_edge_max: int = attrs.field(default=2_576, validator=gt(0))
    """Longest edge in pixels; larger images are scaled down before they are counted."""
    image_patch: int = attrs.field(default=28, validator=gt(0))
    """Edge of a patch in pixels; each is a token."""
    image_factor: float = attrs.field(default=1.0, validator=gt(0))
    """Billed tokens per token of an image."""
    image_tile_tokens: int = attrs.field(default=0, validator=ge(0))
    """Of one tile of 512 pixels."""
    image_base_tokens: int = attrs.field(default=0, validator=ge(0))
    """Besides all tiles."""

    prefill: bool = False
    """Whether a request may end in an assistant message."""
    thinking_bound: bool = True
    """Whether a thinking block's signature binds to everything before it."""
    thinking_modes: tuple[ThinkingMode, ...] = attrs.field(default=(), converter=_modes)
    """Types that the request's `thinking` may have; empty: not known. Behind Chat Completions, a model with
    `between_tools` is sent the reasoning back that led to its calls."""
    system_messages: bool = False
    """Whether a message of role `system` may stand between the others."""

    price_input: float = attrs.field(default=2.0, validator=ge(0))
    """Of a prompt token that is neither read from the cache nor written to it."""
    price_output: float = attrs.field(default=10.0, validator=ge(0))
    """Of a token of the answer."""
    price_read: float | None = _price(None)
    """Of a token that is read from the cache; None: what the provider asks in general, see `Provider.rates`."""
    price_writes: tuple[float, ...] = _writes()
    """Of a token that is written to the cache, for each of `cache_ttls`; empty: what the provider asks in
    general."""

    long_prompt_tokens: int = attrs.field(default=0, validator=ge(0))
    """A longer prompt is billed at the `long_` prices throughout; 0: one price for all lengths."""
    long_price_input: float = attrs.field(default=0.0, validator=ge(0))
    """As `price_input`."""
    long_price_output: float = attrs.field(default=0.0, validator=ge(0))
    """As `price_output`."""
    long_price_read: float | None = _price(None)
    """As `price_read`."""
    long_price_writes: tuple[float, ...] = _writes()
    """As `price_writes`."""

    def __attrs_post_init__(self) -> None:
        for name in ("price_writes", "long_price_writes"):
            prices: tuple[float, ...] = getattr(self, name)
            if prices and len(prices) != len(self.cache_ttls):
                raise ArgumentError(
                    f"model {self.name!r}: {name} has {len(prices)} prices, and cache_ttls "
                    f"{len(self.cache_ttls)} times: give one for each"
                )

    def rates(self, prompt_tokens: int, shares: "Rates") -> "Rates":
        """What it costs for a prompt of so many tokens; `shares`: of what it has no price of its own
        for, by the price of its input."""
        if 0 < self.long_prompt_tokens < prompt_tokens:
            price, output = self.long_price_input, self.long_price_output
            read, writes = self.long_price_read, self.long_price_writes
        else:
            price, output = self.price_input, self.price_output
            read, writes = self.price_read, self.price_writes
        by_share = {ttl: price * share for ttl, share in shares.writes.items()}
        return Rates(
            input=price,
            output=output,
            read=price * shares.read if read is None else read,
            writes={**by_share, **dict(zip(self.cache_ttls, writes, strict=False))},
        )


@attrs.frozen(kw_only=True)
class Rates:
    """What a token costs: in dollars per million, or in tokens of ordinary input."""

    input: float
    """Of a prompt, neither read from the cache nor written to it."""
    output: float
    read: float
    """Of a prompt, found in the cache."""
    writes: Mapping[int, float]
    """Of a prompt, written to the cache: by the seconds that it is kept there."""

    def cost(self, uncached: int, read: int, written: Mapping[int, int], output: int = 0) -> float:
        """Of so many tokens; `written` by the seconds that they are kept."""
        writes = sum(tokens * self.writes[ttl] for ttl, tokens in written.items())
        return uncached * self.input + read * self.read + writes + output * self.output


@attrs.frozen(kw_only=True)
class Limits:
    """What a provider takes and caches of one model's requests."""

    result_tokens: int
    """What the envelope of a tool result costs, however short the result is."""
    pictures_max: int
    """Images and documents in one request."""
    picture_bytes_max: int
    """Bytes of base64 in one request."""
    marks_max: int
    """Cache points that the messages may have; 0: the provider takes none."""
    cache_tokens_min: int = 0
    """A shorter prefix is silently not cached."""
    lookback: int = 0
    """Positions, a mark's own the first, in which what an earlier request wrote is found."""
    runs: frozenset[str] = frozenset()
    """Kinds of content of which several in a row are one position."""
    unmarkable: frozenset[str] = frozenset()
    """Kinds of content that carry no mark."""
    automatic: bool = False
    """Whether every prefix is cached without a mark."""
    ttl_seconds: int = 0
    """How long what is cached is kept at least, whatever the policy says."""
    thinking: frozenset[ThinkingRule] = frozenset()
    """Rules for thinking; none: all of it, some or none may be sent back."""
