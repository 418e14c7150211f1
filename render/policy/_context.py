"""The context: everything that a stage may use in addition to the view, above all the provider and the model it serves.

    blocks -> [Encoder] -> pieces -> [cache points] -> [Provider.messages] -> request -> [Provider.violations]

What is special about an API stays in its folder in `render/providers`, which has a row in the table there. No stage,
rung or budget names a provider; all use `Context.provider`.

What the policy gives to each part of a page in a window of some size is here, too.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from math import isqrt
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import attrs
from attrs.validators import deep_iterable, ge, gt, in_, min_len, optional
from msgspec import Struct, json

from blocks import (
    ArgumentError,
    BlockId,
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TurnId,
    UsageRecorded,
    checked_calls,
)
from blocks.formats import Answer as Answer  # noqa: PLC0414 -- also from here
from render.policy._policy import Policy
from render.view._view import Encoder, Json

# A model: the properties on which a request, its price and its size depend. It is a value; nothing is looked up.
#
# The dated table of real models is data outside this package.  The defaults of `Model(name=...)` are
# safe guesses for an undescribed model.


CacheKind: TypeAlias = Literal["marks", "prefix"]
"""How a provider knows what to cache: by marks in the request (`marks`), or it caches every prefix (`prefix`)."""
ImageRule: TypeAlias = Literal["patches", "budget", "tiles", "flat"]
"""How images are counted: by patches of `image_patch` pixels; by patches after scaling down to the largest number
allowed (`budget`); by tiles of 512 pixels; or at a flat rate."""
ThinkingMode: TypeAlias = Literal["adaptive", "between_tools", "disabled", "enabled"]

ThinkingRule: TypeAlias = Literal["bound", "leads", "paired", "whole"]
"""What a provider requires of the thinking that is sent back to it:

* `bound`: exactly the same content precedes it as when it was generated;
* `leads`: the message whose calls are being answered begins with it;
* `paired`: every call that is sent has the thinking that led to it, however old both are;
* `whole`: all thinking of the current tool loop is sent, or none.
"""


# Not `tuple` itself as the converter: type checkers would not know the type of its items, and attrs would parse its
# signature, which takes longer than to import this module.
def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


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


@checked_calls
@attrs.frozen(kw_only=True)
class Model:
    """Limits, prices and rules of one model; prices are in dollars per million tokens.

    Raises:
        ArgumentError: there is no such field, or a field has an invalid value.
    """

    name: str = attrs.field(validator=min_len(1))
    """The model's name in requests."""
    aliases: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Other names of the same model, dated ids among them."""
    provider: str = attrs.field(default="anthropic", validator=min_len(1))
    """The API that serves it."""
    known: bool = False
    """False: the values are guesses, and every result based on them says so."""

    tokens_window: int = attrs.field(default=128_000, validator=gt(0))
    """Tokens that prompt and answer may have together."""
    input_tokens_max: int = attrs.field(default=0, validator=ge(0))
    """Tokens that a prompt may have, however short the answer is; 0: the whole window."""
    output_tokens_max: int = attrs.field(default=32_000, validator=gt(0))
    """Tokens that an answer may have."""
    tool_overhead_tokens: int = attrs.field(default=675, validator=ge(0))
    """Tokens that the provider adds to the system prompt if a request has tools."""

    cache_kind: CacheKind | None = attrs.field(
        default=None, validator=optional(in_(get_args(CacheKind)))
    )
    """How the provider knows what to cache; None: as for most models of the provider."""
    cache_tokens_min: int = attrs.field(default=4_096, validator=ge(0))
    """Tokens of the shortest prefix that is cached; a shorter one is silently not cached."""
    cache_marks: int = attrs.field(default=4, validator=ge(0))
    """Cache marks that one request may have."""
    cache_lookback: int = attrs.field(default=20, validator=ge(0))
    """Positions, counted back from a mark and including it, at which an entry of an earlier request is found; 0: no
    limit."""
    cache_ttls: tuple[int, ...] = attrs.field(
        default=(300, 3_600), converter=_seconds, validator=deep_iterable(gt(0))
    )
    """Seconds for which a cache entry may be kept; the first applies unless a mark says another."""

    tokenizer: str = attrs.field(default="new", validator=min_len(1))
    """The model's vocabulary, by its name in the table of models."""
    token_factor: float = attrs.field(default=1.5, validator=gt(0))
    """Tokens of this model per o200k token of ordinary text."""
    token_factor_safe: float = attrs.field(default=0.0, validator=ge(0))
    """The most tokens per o200k token to expect, until the provider has counted a request; less than `token_factor`: the
    factor is exact."""
    image_rule: ImageRule = attrs.field(default="patches", validator=in_(get_args(ImageRule)))
    """How the tokens of an image are computed."""
    image_tokens_max: int = attrs.field(default=4_784, validator=gt(0))
    """Largest number of tokens of one image, before `image_factor`; with the rule `flat`, the tokens of every image."""
    image_edge_max: int = attrs.field(default=2_576, validator=gt(0))
    """Longest edge in pixels; larger images are scaled down before they are counted."""
    image_patch: int = attrs.field(default=28, validator=gt(0))
    """Edge of a patch in pixels; each is a token."""
    image_factor: float = attrs.field(default=1.0, validator=gt(0))
    """Billed tokens per token of an image."""
    image_tile_tokens: int = attrs.field(default=0, validator=ge(0))
    """Tokens of one tile of 512 pixels."""
    image_base_tokens: int = attrs.field(default=0, validator=ge(0))
    """Tokens of an image in addition to its tiles."""

    prefill: bool = False
    """Whether a request may end in an assistant message."""
    thinking_bound: bool = True
    """Whether a thinking block's signature binds to everything before it."""
    thinking_modes: tuple[ThinkingMode, ...] = attrs.field(default=(), converter=_modes)
    """Types that the request's `thinking` may have; empty: not known. In Chat Completions, a model with
    `between_tools` gets the reasoning back that led to its calls."""
    system_messages: bool = False
    """Whether messages of the role `system` may occur between the others."""

    price_input: float = attrs.field(default=2.0, validator=ge(0))
    """Price of prompt tokens that are neither read from the cache nor written to it."""
    price_output: float = attrs.field(default=10.0, validator=ge(0))
    """Price of tokens of the answer."""
    price_read: float | None = _price(None)
    """Price of tokens read from the cache; None: the provider's general rule, see `Provider.rates`."""
    price_writes: tuple[float, ...] = _writes()
    """Price of tokens written to the cache, for each of `cache_ttls`; empty: the provider's general rule."""

    long_prompt_tokens: int = attrs.field(default=0, validator=ge(0))
    """A prompt with more tokens is billed entirely at the `long_` prices; 0: one price for all lengths."""
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
                    f"model {self.name!r}: {name} has {len(prices)} prices and cache_ttls has "
                    f"{len(self.cache_ttls)} times; give one price for each time"
                )

    def rates(self, prompt_tokens: int, shares: "Rates") -> "Rates":
        """The prices for a prompt of this size; where the model has no price of its own, `shares` times its input
        price."""
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


class Rates(Struct, frozen=True, kw_only=True):
    """Prices of tokens, in dollars per million or in tokens of ordinary input."""

    input: float
    """Price of prompt tokens that are neither read from the cache nor written to it."""
    output: float
    read: float
    """Price of prompt tokens read from the cache."""
    writes: Mapping[int, float]
    """Price of prompt tokens written to the cache, by the seconds for which they are kept."""

    def cost(self, uncached: int, read: int, written: Mapping[int, int], output: int = 0) -> float:
        """The cost of these numbers of tokens; `written` is by the seconds for which they are kept."""
        writes = sum(tokens * self.writes[ttl] for ttl, tokens in written.items())
        return uncached * self.input + read * self.read + writes + output * self.output


class Limits(Struct, frozen=True, kw_only=True):
    """What a provider accepts and caches of one model's requests."""

    result_tokens: int
    """Tokens of the envelope of a tool result, in addition to its content."""
    pictures_max: int
    """Images and documents in one request."""
    picture_bytes_max: int
    """Bytes of base64 in one request."""
    marks_max: int
    """Cache points that the messages may have; 0: the provider accepts none."""
    cache_tokens_min: int = 0
    """Tokens of the shortest prefix that is cached; a shorter one is silently not cached."""
    lookback: int = 0
    """Positions, counted back from a mark and including it, at which an entry of an earlier request is found."""
    runs: frozenset[str] = frozenset()
    """Kinds of content of which several in a row count as one position."""
    unmarkable: frozenset[str] = frozenset()
    """Kinds of content that cannot carry a mark."""
    automatic: bool = False
    """Whether every prefix is cached without a mark."""
    ttl_seconds: int = 0
    """Seconds for which a cache entry is kept at least, whatever the policy says."""
    thinking: frozenset[ThinkingRule] = frozenset()
    """Rules for thinking; empty: any part of it may be sent back."""


# The provider protocol.


Where: TypeAlias = Literal["user", "result"]
"""The place of a part: a user message, or a tool result."""


class TokenCounter(Protocol):
    """Counts tokens; equal input gives equal output, on every machine."""

    @property
    def name(self) -> str:
        """Identifies the counter: counts of two counters with the same name may be cached together."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:
        """Tokens of something that is not text."""
        ...


class Spot(Struct, frozen=True, kw_only=True, eq=False):
    """The position of one content block in a piece, and its tokens."""

    version: int
    """Version of the block that it shows."""
    role: str
    tokens: int
    kind: str
    """The provider's type of the content block."""


class Segment(NamedTuple):
    """One content block of a request, as the provider's cache sees it."""

    key: Hashable
    """Equal exactly if the provider's cache takes two segments, including their places, for equal."""
    kind: str
    """The provider's type of the content block."""
    ttl: int
    """Seconds for which everything up to here should stay cached; 0: the request asks for no cache entry
    here."""
    tokens: Callable[[TokenCounter], int]
    """Counts its tokens."""


@attrs.frozen(kw_only=True, eq=False)
class Piece:
    """A group of blocks, encoded for a provider. Shared between renders, so never changed.

    It is kept with its group, so it must not refer to it: groups that are no longer shown would then be freed only by
    the garbage collector.
    """

    contents: tuple[Json, ...] = ()
    """Contents that can carry a cache mark, one for each spot."""
    items: tuple[Json, ...] = ()
    """The same contents as items of the request: messages, or items of input."""
    spots: tuple[Spot, ...] = ()
    """One for each content block, in order."""
    tokens: int = 0
    pinned: int = 0
    """Tokens of its notes, which outlive every compaction."""
    standing: int = 0
    """Tokens of its standing instructions, which do, too, within their share."""
    digest: bytes = b""
    notices: tuple[str, ...] = ()
    """Each ends in a colon and its place; notices with the same text are reported once."""
    marked: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)
    """`items` with cache marks, by their spots; the provider fills it in."""

    def tokens_of(self, version: int) -> int:
        """Tokens of one block as it is shown."""
        return self._costs.get(version, 0)

    @cached_property
    def _costs(self) -> Mapping[int, int]:
        costs: dict[int, int] = {}
        for spot in self.spots:
            costs[spot.version] = costs.get(spot.version, 0) + spot.tokens
        return costs


@attrs.frozen
class Violation:
    """One reason why the provider would refuse a request."""

    rule: str
    """Stable short name of the rule."""
    place: str
    """Where in the request: `messages.3.content.1`, `tools.0`, `system`."""
    message: str
    """The provider's error message, as far as it is known."""

    @property
    def may_be_new(self) -> bool:
        """Whether it is only a field that our tables do not know: an API has new fields before any table has them."""
        return self.rule == "extra_field"


@attrs.frozen(kw_only=True)
class Overflow:
    """The prompt did not fit; the numbers are set if the error had them."""

    tokens: int | None = None
    """Tokens of the input, as the provider counts them."""
    tokens_max: int | None = None
    """The limit that was exceeded."""


Violations: TypeAlias = Callable[[Mapping[str, Any], Model | None], tuple[Violation, ...]]


class NewEncoder(Protocol):
    """See `Provider.encoder`."""

    def __call__(
        self,
        counter: TokenCounter,
        model: Model,
        *,
        keep_thinking: bool,
        tools: Sequence[Json],
    ) -> Encoder[Piece]: ...


class NewRequest(Protocol):
    """See `Provider.request`."""

    def __call__(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json: ...


@attrs.frozen(kw_only=True, repr=False)
class Provider:
    """One API, as a table of pure functions.

    `system`, `tools` and `messages` are the sections of a request: of the prompt's text blocks, of tool definitions,
    and of messages or items.
    """

    name: str
    """The provider's name in `Model.provider`."""
    limits: Callable[[Model], Limits]
    """What the provider accepts and caches."""
    rates: Callable[[Model, int], Rates]
    """The prices for a prompt of this many tokens, in dollars per million tokens; prices that the model lacks follow
    from a general rule and its input price."""

    encoder: NewEncoder
    """An encoder, which turns groups of blocks into pieces of a request with these tools."""
    refusal: Callable[[Part, Where], str]
    """The reason why the provider would refuse a part; empty: it would accept it."""
    violations: Violations
    """Every reason why the provider would refuse a request; never raises, whatever the request is. Without a model, the
    strictest rules apply."""

    prefix: Callable[[Sequence[Json], Sequence[Json], str | None], tuple[list[Json], list[Json]]]
    """System prompt and tools as they are sent, with a cache mark at their end that lives for the given time (`5m`);
    None: without a mark."""
    messages: Callable[[Sequence[Piece], Iterable[tuple[int, int]], Sequence[str]], list[Json]]
    """The conversation of these pieces as it is sent, with marks, which are pairs of the index of a piece and of a
    spot, and with texts, which come last, after every mark."""
    request: NewRequest
    """The arguments of the API that depend on the log; their values are shared and must not be changed. `cache_key`
    is the same for all requests of a timeline, for caches that take such a key."""
    extended: Callable[[Json, Sequence[str]], Json]
    """A request with user texts at its end, after every mark; of an empty request, one that consists of these texts."""
    without_thinking: Callable[[Json], Json]
    """A request without the model's thinking, for use if a signature in it is refused."""

    sections: Callable[[Mapping[str, Any]], tuple[Sequence[Json], Sequence[Json], Sequence[Json]]]
    """System prompt, tools and messages of any request, as `contents` takes them."""
    contents: Callable[[Sequence[Json], Sequence[Json], Sequence[Json]], Iterator[tuple[str, Json]]]
    """The content blocks of a request (system, tools, messages) in the order in which they are cached, each with its
    place, such as its role."""
    segment: Callable[[str, Json], Segment]
    """One of `contents`, a place and a content, as the cache sees it."""
    text: Callable[[Json], str]
    """The text of one of `contents` that a model reads, without its own thinking."""

    tool_tokens: Callable[[Json, TokenCounter], int]
    """Tokens of one tool definition."""
    open_tools: Callable[[Iterable[str]], list[Json]]
    """Definitions of tools with these names that take any arguments."""

    read: Callable[[object, Callable[[], BlockId], TurnId], Answer]
    """The blocks and usage of a response, given as the SDK's object or its JSON.

    Raises:
        MisuseError: it is not a response of this provider.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    stop: Callable[[object], str]
    """Why the model stopped, in the terms of the Messages API: `end_turn`, `tool_use`, `max_tokens`, `refusal`,
    `pause_turn`, ...; empty: the response does not say, or is incomplete.

    Raises:
        MisuseError: it is neither a JSON object nor an object that gives one.
    """
    usage: Callable[[object], UsageRecorded | None]
    """The usage that a response reports; None if it reports none.

    Raises:
        MisuseError: it is neither a JSON object nor an object that gives one.
    """

    def __repr__(self) -> str:
        return f"Provider({self.name!r})"


# The room of each part of the page, in any window.
#
# A part that is read needs room for what there is to say, not a share of the window: nobody reads half a million tokens
# of a handover. In a small window it must leave room for the work. So the page has a share of a small window, and its size levels
# off in a large one:
#
#     page(window) = page_tokens * window / (window + PAGE_HALF)
#
#     window      20,000   30,000   60,000   200,000   1,000,000
#     page         6,670    8,570   12,000    16,670      19,230      with the default of 20,000
#
# The parts share it by the policy's shares. The working set is not read but used: what the next edits need grows with what
# is being worked on. It has a share of the window of its own, up to `WORKING_MAX`.
#
# Of the written part, what must be said of any session (the goal, the state, what the user demands) needs one or two thousand
# tokens; what was found and decided grows with the window, because a larger one is folded less often and holds more when it
# is. The beginning of a split turn has a room of its own:
#
#     window      12,000   30,000   60,000   65,000 and more
#     history      2,700    4,500    7,500     8,000      with the defaults of the policy
#     prefix         460      550      700       725 (200,000: 1,400)
#
# A summary that other engines ask of a model has 2,000 to 4,000 tokens, from a window of 200,000 in one pass; one that is
# updated holds the whole session, so it has more. With 3,000 in a window of 30,000 it was full after four folds of 40.


PAGE_HALF: Final = 40_000
"""The window in which the page has half of `page_tokens`."""
WORKING_MAX: Final = 24_000
"""The most tokens of the working set."""
WRITTEN_BASE: Final = 1500
WRITTEN_SHARE: Final = 1 / 10
"""History has this many tokens, and this share of the window, up to `Policy.summary_tokens`."""
PREFIX_BASE: Final = 400
PREFIX_SHARE: Final = 1 / 200
"""The same for the beginning of a split turn, up to `Policy.prefix_tokens`."""
LIMIT_SHARE: Final = 0.25
"""The largest share of a small window that history may have; the prefix may have half of that."""


@attrs.frozen(kw_only=True)
class PageRoom:
    """The token limits of the page's parts."""

    history: int
    """The written part: task, state, plan, and the lists."""
    prefix: int
    """The beginning of a split turn in it."""
    state: int
    """Where things stand."""
    findings: int
    """What was found and decided."""
    working: int
    """The working set."""
    done: int
    """What was done."""
    report: int
    """All computed parts that are read, together: what one of these parts leaves, another has."""
    most: int
    """All computed parts together, by the target."""
    windows: float = 1.0
    """How many times as much as is folded and kept now a window has room for: a cold cache is compacted before it is full."""

    @classmethod
    def of(
        cls, policy: Policy, window: int, most: int | None = None, report_most: int | None = None
    ) -> "PageRoom":
        """The rooms by the policy, in at most `most` tokens together, and `report_most` of the report. That keeps its room as
        long as it fits: it is short, and read. The working set can be read again, so it gives way."""
        window = max(window, 1)
        page = policy.page_tokens * window / (window + PAGE_HALF)
        report = (policy.state_ratio + policy.found_ratio + policy.done_ratio) * page
        most = int(window) if most is None else max(most, 0)
        written = int(LIMIT_SHARE * window)
        history = min(int(WRITTEN_BASE + WRITTEN_SHARE * window), written)
        prefix = min(int(PREFIX_BASE + PREFIX_SHARE * window), written // 2)
        factor = min((most if report_most is None else report_most) / max(report, 1), 1.0)
        return cls(
            history=min(policy.summary_tokens, history),
            prefix=min(policy.prefix_tokens, prefix),
            state=int(factor * policy.state_ratio * page),
            findings=int(factor * policy.found_ratio * page),
            done=int(factor * policy.done_ratio * page),
            report=int(factor * report),
            working=int(min(policy.working_ratio * window, WORKING_MAX)),
            most=most,
        )

    def times(self, factor: float) -> "PageRoom":
        """The rooms of the report, so many times as large."""
        names = ("state", "findings", "done", "report")
        return attrs.evolve(self, **{name: int(factor * getattr(self, name)) for name in names})

    def working_beside(self, tokens: int) -> int:
        """The room of the working set beside a report of so many tokens."""
        return max(min(self.working, self.most - tokens), 0)

    @property
    def whole(self) -> int:
        """The page if every part fills its room."""
        return self.report + self.working


# The context.


FULL_TOKENS: Final = 100_000
"""Tokens up to which all of a limit is filled. Beyond them, only as much as grows with the fourth root of the limit: each call
pays for all that stands in the window (docs/tuning.md)."""


def capacity_of(limit: int, policy: Policy) -> int:
    """Tokens up to which a limit is filled by a policy."""
    if policy.trigger_tokens is None and limit > FULL_TOKENS:
        return isqrt(isqrt(FULL_TOKENS**3 * limit))
    return min(limit, policy.trigger_tokens or limit)


_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Fixed:
    """System prompt and tools, which no event changes, with values computed from them (see `Prefix`).

    As long as they are the same, all renders use the same object.
    """

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    _memo: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """The value that `make` returned at the first call with this key."""
        if key not in self._memo:
            self._memo[key] = make()
        value: _T = self._memo[key]
        return value


class Prefix(Struct, frozen=True, kw_only=True):
    """System prompt and tools as they are sent, before all messages."""

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    system_tokens: int
    """Tokens of the system prompt; before calibration, as all tokens here."""
    tool_tokens: int
    """Tokens of the tools, with what the provider adds to explain them."""
    tokens: int
    """Both together."""
    digest: str
    """SHA-256 of system and tools as they are sent, as hexadecimal text."""
    start: bytes
    """SHA-256 of system and tools without their cache mark, with which the chain of hashes of a request begins."""


@attrs.frozen(kw_only=True)
class Context:
    """What one render may use: policy, model, provider, counter, system prompt and tools, and the current time."""

    policy: Policy
    model: Model
    provider: Provider = attrs.field(repr=False)
    counter: TokenCounter
    now: float
    limit: int
    """Tokens that the prompt may have: the window less the output reserve."""
    output_tokens: int = 0
    """The output reserve; 0: the limit was given directly."""
    notices: tuple[str, ...] = ()
    """Notices about guessed values."""
    system: tuple[Json, ...] = attrs.field(default=(), repr=False)
    """Text blocks of the system prompt."""
    tools: tuple[Json, ...] = attrs.field(default=(), repr=False)
    overhead_tokens: int = 0
    """Tokens that the provider adds to a request with tools."""
    calibrate: bool = False
    """Whether counts are corrected by the provider's reports."""
    keep_thinking: bool = True
    """Whether recorded thinking is shown at all."""
    cache_key: str = ""
    """A key that all requests of one timeline share, for the provider's cache; empty: none."""
    validate: bool = False
    """Whether each request is checked against the rules of its provider."""
    squeeze: float = 1.0
    """The factor by which the policy's shares are smaller than those of the timeline (see `squeezed`)."""
    can_externalize: bool = False
    """Whether there is an artifact store for large content."""
    can_encrypt: bool = False
    """Whether that store accepts confidential and restricted content."""
    fixed: Fixed = attrs.field(
        default=attrs.Factory(lambda self: Fixed(self.system, self.tools), takes_self=True),
        eq=False,
        repr=False,
    )
    """System prompt and tools with values computed from them; pass it on while they stay the same."""

    latest_account: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)
    """The view that was last accounted for, and its account, because several stages need it."""

    @cached_property
    def capacity(self) -> int:
        """Tokens up to which requests are filled, and of which the policy's shares are taken: the limit, or `trigger_tokens`
        if that is less; without these, what is to be filled of a limit above `FULL_TOKENS`."""
        return capacity_of(self.limit, self.policy)

    @cached_property
    def encoder(self) -> Encoder[Piece]:
        """Turns groups of blocks into pieces of this context's requests."""
        thinking, tools = self.keep_thinking, self.fixed.tools
        return self.provider.encoder(self.counter, self.model, keep_thinking=thinking, tools=tools)

    @cached_property
    def prefix(self) -> Prefix:
        """System prompt and tools with their cache mark; without a mark if the provider would not cache them."""
        names = self.provider.name, self.counter.name
        system, tools = self.fixed.memo(names, self._count_fixed)
        tools += self.overhead_tokens if self.tools else 0
        enough = system + tools >= self.limits.cache_tokens_min and self.limits.marks_max
        ttl = self.policy.system_ttl if enough else None
        key = (*names, system, tools, ttl)
        return self.fixed.memo(key, lambda: self._mark_fixed(system, tools, ttl))

    def _count_fixed(self) -> tuple[int, int]:
        """Tokens of the system prompt, and of the definitions of the tools."""
        system = sum(self.counter.count(str(block.get("text", ""))) for block in self.fixed.system)
        return system, sum(self.provider.tool_tokens(t, self.counter) for t in self.fixed.tools)

    def _mark_fixed(self, system_tokens: int, tool_tokens: int, ttl: str | None) -> Prefix:
        fixed = self.fixed
        system, tools = self.provider.prefix(fixed.system, fixed.tools, ttl)
        return Prefix(
            system=tuple(system),
            tools=tuple(tools),
            system_tokens=system_tokens,
            tool_tokens=tool_tokens,
            tokens=system_tokens + tool_tokens,
            digest=sha256(json.encode([system, tools])).hexdigest(),
            start=sha256(json.encode([fixed.system, fixed.tools])).digest(),
        )

    @cached_property
    def ttl_seconds(self) -> float:
        """How long the provider keeps a cached request."""
        return max(self.policy.ttl_seconds, self.limits.ttl_seconds)

    @cached_property
    def limits(self) -> Limits:
        """What the provider accepts and caches."""
        return self.provider.limits(self.model)
