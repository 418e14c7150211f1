"""Events: facts about a timeline that are never edited.

A version is a position in the log of one timeline, counted from 1. The version of a block is that of the event that
appended it.

The parts come first: hidden and carried blocks, reasons, the provenance of a summary, and the bill of a call.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from blocks._block import Block, RangeSummary
from blocks._fold_state import Agreed, FoldState
from blocks._ids import ArtifactId, BlockId, EventId, TimelineId
from blocks._summary import DroppedSpan, StructuredSummary

# Parts.


HideReason: TypeAlias = Literal[
    "expired", "requested", "cleared", "externalized", "dropped", "clipped", "unsigned"
]
"""Why a block is hidden; `clipped`: it was too large for one step, `unsigned`: it is thinking whose signature does not
match the blocks before it any more."""

SkipReason: TypeAlias = Literal["no_gain", "no_cut", "vetoed", "failed", "cannot_fit"]
"""Why a compaction that was due did not happen."""
Trigger: TypeAlias = Literal["proactive", "cold", "forced"]
"""Why a compaction is made: the prompt is too large, the cache has expired, or it was requested."""


class Answered(Struct, frozen=True, kw_only=True):
    """The request that a response answers."""

    shown: int
    """Version of the view that it showed."""
    sent: str
    """Hash of what it sent; see `RequestRendered`."""
    UNKNOWN: ClassVar[str] = "?"
    """The hash of a request that is none of those recorded, or of which it is unknown which one it was."""


class Hidden(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block that is shown as a shorter replacement."""

    block: BlockId
    """Its id."""
    replacement: str = ""
    """The text that the model sees instead; empty: nothing."""
    artifact: ArtifactId = ArtifactId("")
    """Id of the content in the artifact store to which it was moved; for a block that is hidden on request, the id of
    content that must not come back from there."""
    dropped: DroppedSpan | None = None
    """In the first block of a dropped span: the line for the whole span."""
    head: int = 0
    tail: int = 0
    """Characters of the block's own text that are shown before and after the replacement; the text itself may not be
    quoted here."""


class Carried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folded block that is still shown after the summary."""

    version: int
    """The version at which it was appended."""
    block: Block
    """The whole block."""
    ordinal: int = 1
    """Its number among the blocks of its turn with the same path stem; 0: its path has its version instead."""
    clipped: str = ""
    """The text that is shown instead, if the whole would not fit its share."""
    withheld: bool = False
    """Whether it is hidden on request: then only `clipped` is shown, even if that is empty."""


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a summary came from."""

    source_hash: str
    """Hash of the folded content."""
    model: str = ""
    """Empty for the extractive summariser."""
    prompt: str = ""
    """Version of the instruction."""
    stop_reason: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    calls: int = 1
    """Calls of the model that were made for it, with those that failed."""
    reused: bool = False
    """Another timeline had already paid for a summary of equal content: no model was called, and nothing was spent."""


class CacheEntry(Struct, frozen=True, kw_only=True):
    """A prefix of a request in a provider's cache, as it is simulated."""

    prefix: int
    """The number of the prefix; equal prefixes have equal numbers."""
    tokens: int
    """The provider's tokens of the prefix."""
    seconds: int
    """How long it is kept after its last use; 0: it is not an entry, and only its tokens are known."""


class Bill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call through a gateway cost, and what it would have cost otherwise; in dollars, the answer included."""

    paid: float | None = None
    """By the usage that the provider reported and the model's prices; None: one of the two is not known."""
    full: float = 0.0
    """What it would have cost if this request and all earlier ones had been sent as the client wrote them, without the
    tools with which an agent reads back what the gateway has folded, and without their results."""
    uncached: float = 0.0
    """The same without the provider's cache."""
    possible: float = 0.0
    """What the rendered request would have saved, if it was only recorded and the client's own was sent; below 0: it
    would have cost more."""
    full_tokens: int = 0
    """Tokens of that prompt, as the provider counts."""
    too_long: bool = False
    """Whether these are more than the model takes: the client would have made the prompt shorter by itself."""
    rewritten: bool = False
    """Whether another request was sent than the client wrote."""
    compactions: int = 0
    """Compactions before this call."""
    cut: bool = False
    """Whether the answer broke off before its tokens were reported: no amount has them."""
    bust: bool = False
    """Whether what was sent lost a cached prefix that the client's own request would have read, without a compaction."""
    sent_at: float = 0.0
    """When the request was sent, in seconds since the epoch."""
    cache: str = ""
    """Name of the provider's cache: a salt, a dot, and a salted hash of URL, account and model."""
    entries: tuple[CacheEntry, ...] = ()
    """What the client's own request leaves in the cache."""
    sent_entries: tuple[CacheEntry, ...] | None = None
    """What the rendered request leaves there; None: the same."""


# Kinds.


class BaseEvent(
    Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, weakref=False
):
    """Fields every event has. Never instantiated; annotate with `Event`."""

    id: EventId
    at: float
    """Seconds since the epoch."""


class BlockAppended(BaseEvent, frozen=True, kw_only=True, tag="BlockAppended"):
    """A block joined the timeline."""

    block: Block
    """The block."""
    answers: Answered | None = None
    """In the first block of a response: the request that it answers; None: the newest."""
    agrees: Agreed | None = None
    """In the last block of a message of a foreign history: how much of that history is then in the log."""


class BlocksHidden(BaseEvent, frozen=True, kw_only=True, tag="BlocksHidden"):
    """Blocks are shown as their replacements from now on; one event for a whole batch."""

    hidden: tuple[Hidden, ...]
    """Which blocks, and what is shown for each."""
    reason: HideReason
    """Why they are hidden: `expired`, `requested`, `clipped`, `externalized`, ..."""
    redacted: bool = False
    """They were already hidden for the same reason; only quotations of blocks that were since hidden on request were
    removed from the texts."""
    tokens_before: int = 0
    """In the first event of a compaction that folded nothing: tokens of the whole request before it; 0: not known."""
    tokens_after: int = 0
    """In the last event of a compaction that folded nothing: tokens of the whole request after it; 0 in all other
    events."""


class BlocksRestored(BaseEvent, frozen=True, kw_only=True, tag="BlocksRestored"):
    """Hidden blocks are shown again."""

    blocks: tuple[BlockId, ...]
    """Their ids."""


class RangeCompacted(BaseEvent, frozen=True, kw_only=True, tag="RangeCompacted"):
    """Everything from `start` up to, not including, `cut` is folded into `summary`.

    The size is constant apart from the summary and what is carried: two versions, never a list of
    ids.  Loading a timeline reads this event and those from `cut` on, nothing older.
    """

    start: int
    """Version of the first block that is folded."""
    cut: int
    """Version of the first block that stays."""
    summary: RangeSummary
    """The summary that replaces the range."""
    carried: tuple[Carried, ...] = ()
    """Blocks of the range that are still shown, oldest first."""
    state: FoldState = FoldState()
    """The state of the fold just before `cut`."""
    trigger: Trigger = "proactive"
    """Why: `proactive`, `cold` or `forced`."""
    tokens_before: int = 0
    """Tokens of the whole request before the first rung of the compaction."""
    tokens_after: int = 0
    """Tokens of the whole request after its last rung."""
    policy: str = ""
    """Hash of the policy that decided."""
    provenance: Provenance | None = None
    """Who wrote the summary, and what that cost; None: no model."""
    ordinal: int = 0
    """The number of its summary in its turn; 0: not known, so the summary's path has its version."""


class RangeExpanded(BaseEvent, frozen=True, kw_only=True, tag="RangeExpanded"):
    """A compaction was undone; the blocks that it folded are visible again."""

    compaction: int
    """Version of the `RangeCompacted`."""


class SummaryReplaced(BaseEvent, frozen=True, kw_only=True, tag="SummaryReplaced"):
    """A summary was rewritten later."""

    compaction: int
    """Version of the compaction whose summary it was."""
    summary: RangeSummary
    """The new summary."""
    provenance: Provenance | None = None
    """The model that wrote it, and the cost; None: no model."""
    redacted: bool = False
    """Whether it is the previous summary without quotations of blocks that were hidden on request since."""


class SummaryPrepared(BaseEvent, frozen=True, kw_only=True, tag="SummaryPrepared"):
    """A model has summarised a range; a later fold of this range need not pay again."""

    key: str
    """The key by which it is found: see `render.summary_key`."""
    cut: int
    """Version of the first block that it does not cover."""
    summary: StructuredSummary
    """The model's summary."""
    provenance: Provenance
    """The model, and the cost."""


class SummaryRequested(BaseEvent, frozen=True, kw_only=True, tag="SummaryRequested"):
    """A summariser was called, whatever came of it; committed before the call, and after it if it made further calls
    of a model."""

    calls: int = 1
    """Calls that this event counts; 0: the summary was there already, paid for by another timeline. The event keeps the
    versions of timelines with equal content equal, so that they can use each other's next summary, too."""


class CompactionSkipped(BaseEvent, frozen=True, kw_only=True, tag="CompactionSkipped"):
    """A compaction was due and did not happen."""

    reason: SkipReason
    """`no_gain`, `no_cut`, `vetoed`, `failed` or `cannot_fit`."""
    tokens: int = 0
    """Visible tokens at that moment."""
    detail: str = ""
    """More details, in words."""


class RequestRendered(BaseEvent, frozen=True, kw_only=True, tag="RequestRendered"):
    """A request was handed out; from now on the provider may hold its prefix in its cache."""

    content_hash: str
    """Hash of everything that was handed out."""
    tokens: int
    """Estimated size."""
    shown: int = 0
    """Version of the view that was rendered; later blocks were not in the request."""
    cache_points: tuple[int, ...] = ()
    """Versions of the blocks that carry a cache point, oldest first; the last is the tail."""
    prefix_hash: str = ""
    """Hash of everything before the last cache point."""
    sent: str = ""
    """Hash of system prompt, tools and all content without cache marks, to which thinking is bound."""
    ttl: float = 300.0
    """Seconds for which the provider may keep it in its cache."""
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts whose content it showed after the tail."""


class UsageRecorded(BaseEvent, frozen=True, kw_only=True, tag="UsageRecorded"):
    """The tokens of a request, as the provider reported them."""

    model: str = ""
    """The model's name, as the provider reported it."""
    response: str = ""
    """Id of the response."""
    uncached: int = 0
    """Prompt tokens at the ordinary price."""
    cache_read: int = 0
    """Prompt tokens that were read from the cache."""
    cache_write: int = 0
    """Prompt tokens that were written to the cache."""
    cache_write_long: int = 0
    """Those of them that are kept for the longer of the provider's times, such as an hour."""
    output: int = 0
    """Tokens of the answer."""
    tier: str = ""
    """The service tier, if another than the one of the list prices was reported."""
    window: int = 0
    """The most tokens of a prompt, as the log of a recorded session says; 0: unknown."""
    aside: bool = False
    """Whether the call is no part of the conversation: of a sub-agent, or broken off while thinking."""
    estimated: int = 0
    """Our uncalibrated estimate of the same request; 0: unknown."""
    bill: Bill | None = None
    """What the call cost, if it went through a gateway; its answer may then have reported no tokens."""

    @property
    def input(self) -> int:
        """The whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


class TokensCounted(BaseEvent, frozen=True, kw_only=True, tag="TokensCounted"):
    """What the provider says about the size of a request that was not answered: the count of its counting endpoint, or of
    a refusal because the prompt was too long. It costs nothing."""

    model: str = ""
    """The model for which it counted."""
    input: int = 0
    """The whole prompt; 0: it did not say."""
    estimated: int = 0
    """Our uncalibrated estimate of the same request."""
    limit: int = 0
    """The most tokens that the provider accepts, as its refusal says; 0: it does not say."""


class TimelineForked(BaseEvent, frozen=True, kw_only=True, tag="TimelineForked"):
    """This timeline began as a copy of another."""

    parent: TimelineId
    """The other timeline."""
    version: int
    """The version up to which it was copied."""


class OpaqueEvent:
    """An event of a kind that this version does not know; it is kept and written out again unchanged."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.fields = fields
        """All fields except the kind; must not be changed."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueEvent):
            return NotImplemented
        return (self.kind, self.fields) == (other.kind, other.fields)

    def __hash__(self) -> int:
        return hash((self.kind, self.id))

    def __repr__(self) -> str:
        return f"OpaqueEvent({self.kind!r}, {self.fields!r})"

    @property
    def id(self) -> EventId:
        """The event's id."""
        return EventId(str(self.fields.get("id", "")))

    @property
    def at(self) -> float:
        """Seconds since the epoch."""
        at = self.fields.get("at", 0.0)
        return float(at) if isinstance(at, int | float) else 0.0


KnownEvent: TypeAlias = (
    BlockAppended
    | BlocksHidden
    | BlocksRestored
    | RangeCompacted
    | RangeExpanded
    | SummaryReplaced
    | SummaryPrepared
    | SummaryRequested
    | CompactionSkipped
    | RequestRendered
    | UsageRecorded
    | TokensCounted
    | TimelineForked
)

if TYPE_CHECKING:
    Event: TypeAlias = KnownEvent | OpaqueEvent
    """An event of any kind."""
else:
    Event = KnownEvent  # see the note at `Block`

Recorded: TypeAlias = tuple[int, Event]
"""An event with its version."""
