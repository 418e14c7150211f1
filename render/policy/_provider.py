"""The provider seam: what the stages must know of an API, and what only that API's folder knows.

    blocks -> [Encoder] -> pieces -> [cache points] -> [Provider.messages] -> request -> [Validator]

A provider is a folder below `render/providers` and a row in the table there.  No stage, rung or budget
names one: they have `Context.provider`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import attrs

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
from render.view._group import Group
from render.view._provider_blocks import Json
from render.view._replace import replaced
from render.view._view import Shown

Where: TypeAlias = Literal["user", "result"]
"""In a user's message, or in the result of a tool."""


class TokenCounter(Protocol):
    """Counts tokens; equal input gives equal output, on every machine."""

    @property
    def name(self) -> str:
        """Tells counters apart: what two counters of one name count may be cached together."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def part(self, part: ImagePart | DocumentPart | ProviderPart) -> int:
        """Tokens of something that is not text."""
        ...


@attrs.frozen(kw_only=True, eq=False)
class Spot:
    """Where in a piece one content block stands, and what it costs."""

    version: int
    """Version of the block that it shows."""
    role: str
    tokens: int
    kind: str
    """The provider's type of the content block."""


class Segment(NamedTuple):
    """One content block of a request, as the provider's cache sees it."""

    key: Hashable
    """Equal exactly for what the cache takes for equal, the place where it stands included."""
    kind: str
    """The provider's type of the content block."""
    ttl: int
    """Seconds that it, and all before it, is to be kept; 0: nothing is written here."""
    tokens: Callable[[TokenCounter], int]
    """What it costs."""


@attrs.frozen(kw_only=True, eq=False)
class Piece:
    """A group in the provider's words. Shared between renders: never changed."""

    group: Group
    contents: tuple[Json, ...] = ()
    """What can carry a mark, one for each spot."""
    items: tuple[Json, ...] = ()
    """The same as the request has it: messages, or items of input."""
    spots: tuple[Spot, ...] = ()
    """One for each content block, in order."""
    tokens: int = 0
    pinned: int = 0
    """Tokens of its notes, which outlive every compaction."""
    digest: bytes = b""
    notices: tuple[str, ...] = ()
    """Each ends in a colon and the place that it is about: what says the same is told once."""
    marked: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)
    """`items` with cache marks, by their spots; the provider fills it in."""

    def tokens_of(self, version: int) -> int:
        """What one block costs as it is shown."""
        return self._costs.get(version, 0)

    @cached_property
    def _costs(self) -> Mapping[int, int]:
        costs: dict[int, int] = {}
        for spot in self.spots:
            costs[spot.version] = costs.get(spot.version, 0) + spot.tokens
        return costs


@attrs.frozen
class Encoder:
    """Encodes groups, each once: the piece stays with the group."""

    key: tuple[object, ...]
    """Two encoders of one key give the same pieces."""
    encode: Callable[[Group], Piece]

    def pieces(self, shown: Shown) -> tuple[Piece, ...]:
        """Every group in the provider's words, its hidden blocks replaced."""
        return shown.group_memo.each(self.key, shown.groups, self.shown)

    def shown(self, group: Group) -> Piece:
        """The group in the provider's words, its hidden blocks replaced."""
        return group.memo(
            self.key, lambda: self.encode(replaced(group) if group.is_hidden else group)
        )


@attrs.frozen
class Violation:
    """One reason why the provider would refuse a request."""

    rule: str
    """Stable short name of the rule."""
    place: str
    """Where in the request: `messages.3.content.1`, `tools.0`, `system`."""
    message: str
    """What the provider would answer, as far as its words are known."""


@attrs.frozen(kw_only=True)
class Overflow:
    """The prompt did not fit; the numbers are there when the error told them."""

    tokens: int | None = None
    """Tokens of the input, as the provider counts them."""
    tokens_max: int | None = None
    """The limit it ran into."""


class Validator(Protocol):
    """Looks at one request after the other of a growing conversation."""

    def check(self, request: Mapping[str, Any], model: Model) -> tuple[Violation, ...]:
        """Every reason why the provider would refuse `request`; never raises, whatever it is."""
        ...


class Provider(Protocol):
    """One API, without state: all methods are pure."""

    @property
    def name(self) -> str:
        """What `Model.provider` calls it."""
        ...

    def limits(self, model: Model) -> Limits:
        """What it takes and caches."""
        ...

    def encoder(self, counter: TokenCounter, model: Model, *, keep_thinking: bool) -> Encoder:
        """What turns groups of blocks into pieces of a request."""
        ...

    def tool_tokens(self, tool: Json, counter: TokenCounter) -> int:
        """Tokens of one tool definition."""
        ...

    def prefix(
        self, system: Sequence[Json], tools: Sequence[Json], ttl: str | None
    ) -> tuple[list[Json], list[Json]]:
        """System and tools as they are sent, with a cache mark at their end that lives for `ttl`; None:
        without one."""
        ...

    def messages(
        self, pieces: Sequence[Piece], marks: Iterable[tuple[int, int]], texts: Sequence[str]
    ) -> list[Json]:
        """The conversation as it is sent: `marks` are pairs of a piece's index and a spot's; `texts`
        come last, behind every mark."""
        ...

    def request(
        self,
        system: Sequence[Json],
        tools: Sequence[Json],
        messages: Sequence[Json],
        cache_key: str = "",
    ) -> Json:
        """The arguments of the API that depend on the log; what they hold is shared, and not to be
        changed. `cache_key`: what requests of one timeline have in common, for a cache that asks for it."""
        ...

    def sections(
        self, request: Mapping[str, Any]
    ) -> tuple[Sequence[Json], Sequence[Json], Sequence[Json]]:
        """System, tools and messages of a request, whoever wrote it, as `contents` takes them."""
        ...

    def rates(self, model: Model, prompt_tokens: int) -> Rates:
        """What it charges for a prompt of so many tokens, in dollars per million: what the model has no
        price of its own for, by a general rule over the price of its input."""
        ...

    def contents(
        self, system: Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
    ) -> Iterator[tuple[str, Json]]:
        """The content blocks of a request in the order of its cache, each with the place where it
        stands: its role, for one."""
        ...

    def segment(self, place: str, content: Json) -> Segment:
        """What the cache knows of one of `contents`."""
        ...

    def text(self, content: Json) -> str:
        """What a model reads of one of `contents`, its own thinking aside."""
        ...

    def open_tools(self, names: Iterable[str]) -> list[Json]:
        """For calls of tools with these names, definitions that take any arguments."""
        ...

    def validator(self) -> Validator:
        """A new validator."""
        ...

    def extended(self, request: Json, text: str) -> Json:
        """A request with one more text of the user's, behind everything and so behind every mark."""
        ...

    def quoting(self, texts: Sequence[str]) -> Json:
        """A request that consists of these texts of the user's."""
        ...

    def without_thinking(self, request: Json) -> Json:
        """A request without the model's thinking, for when a signature in it is refused."""
        ...

    def refusal(self, part: Part, where: Where) -> str:
        """Why it would refuse a part; empty: it would not."""
        ...

    def read(self, response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
        """What the model said and what it cost; `response` is the SDK's object, or its JSON.

        Raises:
            MisuseError: it is no response of this provider's.
            CodecError: it holds what cannot be stored; it says where.
        """
        ...

    def stop(self, response: object) -> str:
        """Why the model stopped, in the words of the Messages API: `end_turn`, `tool_use`, `max_tokens`,
        `refusal`, `pause_turn`, ...; empty: it does not say, or did not come to an end.

        Raises:
            MisuseError: it is no JSON object, and no object that gives one.
        """
        ...

    def usage(self, response: object) -> UsageRecorded | None:
        """What a response says about its cost, if it says anything.

        Raises:
            MisuseError: it is no JSON object, and no object that gives one.
        """
        ...

    def overflow(self, status: int | None, kind: str, message: str) -> Overflow | None:
        """An error, or a stop reason, read; None when it is about something else than the window.

        `status` is the HTTP status, None inside a stream. `kind` is the most specific name that the
        provider gave: its error code, its error type, or the stop reason.
        """
        ...
