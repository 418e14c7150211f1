"""The provider protocol: what the stages use of an API; everything else stays in that API's folder.

    blocks -> [Encoder] -> pieces -> [cache points] -> [Provider.messages] -> request -> [Provider.violations]

A provider is a folder in `render/providers` and a row in the table there. No stage, rung or budget names a
provider; all use `Context.provider`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import attrs
from msgspec import Struct

from blocks import (
    BlockId,
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TurnId,
    UsageRecorded,
)
from blocks.formats import Answer as Answer  # noqa: PLC0414 -- also from here
from render.policy._model import Limits, Model, Rates
from render.view._group import Group, as_shown
from render.view._provider_blocks import Json
from render.view._view import Shown

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
class Encoder:
    """Encodes groups, each once, because the piece is kept with the group."""

    key: tuple[object, ...]
    """Encoders with equal keys give equal pieces."""
    encode: Callable[[Group], Piece]

    def pieces(self, shown: Shown) -> tuple[Piece, ...]:
        """Every group, encoded, with its hidden blocks replaced."""
        return shown.group_memo.each(self.key, shown.groups, self.shown)

    def shown(self, group: Group) -> Piece:
        """The group, encoded, with its hidden blocks replaced."""
        return group.memo(
            self.key, lambda: self.encode(as_shown(group) if group.is_hidden else group)
        )


@attrs.frozen
class Violation:
    """One reason why the provider would refuse a request."""

    rule: str
    """Stable short name of the rule."""
    place: str
    """Where in the request: `messages.3.content.1`, `tools.0`, `system`."""
    message: str
    """The provider's error message, as far as it is known."""


@attrs.frozen(kw_only=True)
class Overflow:
    """The prompt did not fit; the numbers are set if the error had them."""

    tokens: int | None = None
    """Tokens of the input, as the provider counts them."""
    tokens_max: int | None = None
    """The limit that was exceeded."""


class Provider(Protocol):
    """One API, without state: all methods are pure."""

    @property
    def name(self) -> str:
        """The provider's name in `Model.provider`."""
        ...

    def limits(self, model: Model) -> Limits:
        """What the provider accepts and caches."""
        ...

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """An encoder, which turns groups of blocks into pieces of a request."""
        ...

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of one tool definition."""
        ...

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """System prompt and tools as they are sent, with a cache mark at their end that lives for `ttl`; None: without
        a mark."""
        ...

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """The conversation as it is sent: `marks` are pairs of the index of a piece and of a spot; `texts`
        come last, after every mark."""
        ...

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The arguments of the API that depend on the log; their values are shared and must not be
        changed. `cache_key` is the same for all requests of a timeline, for caches that take such a key."""
        ...

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """System prompt, tools and messages of any request, as `contents` takes them."""
        ...

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """The prices for a prompt of this size, in dollars per million tokens; prices that the model lacks follow
        from a general rule and its input price."""
        ...

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """The content blocks of a request in the order in which they are cached, each with its place, such as its
        role."""
        ...

    def segment(self, place: str, content: Json) -> Segment:
        """One of `contents` as the cache sees it."""
        ...

    def text(self, content: Json) -> str:
        """The text of one of `contents` that a model reads, without its own thinking."""
        ...

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        """Definitions of tools with these names that take any arguments."""
        ...

    def violations(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is."""
        ...

    def extended(self, request: Json, text: str) -> Json:
        """A request with one more user text at the end, after every mark."""
        ...

    def quoting(self, texts: Sequence[str]) -> Json:
        """A request that consists of these user texts."""
        ...

    def without_thinking(self, request: Json) -> Json:
        """A request without the model's thinking, for use if a signature in it is refused."""
        ...

    def refusal(self, part: Part, where: Where) -> str:
        """The reason why the provider would refuse a part; empty: it would accept it."""
        ...

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """The blocks and usage of a response, given as the SDK's object or its JSON.

        Raises:
            MisuseError: it is not a response of this provider.
            CodecError: it holds a value that cannot be stored; the error says where.
        """
        ...

    def stop(self, response: object) -> str:
        """Why the model stopped, in the terms of the Messages API: `end_turn`, `tool_use`, `max_tokens`,
        `refusal`, `pause_turn`, ...; empty: the response does not say, or is incomplete.

        Raises:
            MisuseError: it is neither a JSON object nor an object that gives one.
        """
        ...

    def usage(self, response: object) -> UsageRecorded | None:
        """The usage that a response reports; None if it reports none.

        Raises:
            MisuseError: it is neither a JSON object nor an object that gives one.
        """
        ...

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """What an error or a stop reason says about an exceeded window; None: it is about something else.

        `status` is the HTTP status, None inside a stream. `kind` is the most specific name that the
        provider gave: its error code, its error type, or the stop reason.
        """
        ...
