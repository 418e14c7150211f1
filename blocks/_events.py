"""Events: facts about a timeline, in the past tense, never edited.

A version is a position in one timeline's log, counted from 1; a block's version is that of the
event which appended it.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from blocks._block import Block, RangeSummary
from blocks._event_parts import (
    Answered,
    Carried,
    Hidden,
    HideReason,
    Provenance,
    SkipReason,
    Trigger,
)
from blocks._fold_state import Agreed, FoldState
from blocks._ids import ArtifactId, BlockId, EventId, TimelineId
from blocks._summary import StructuredSummary


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
    """What joined."""
    answers: Answered | None = None
    """Of the first block of a response: the request that it answers; None: the newest."""
    agrees: Agreed | None = None
    """Of the last block of a message of a foreign history: with it, so much of that is there."""


class BlocksHidden(BaseEvent, frozen=True, kw_only=True, tag="BlocksHidden"):
    """Blocks are shown as their replacements from now on; one event for a whole batch."""

    hidden: tuple[Hidden, ...]
    """Which, and what is shown for each."""
    reason: HideReason
    """`expired`, `requested`, `clipped`, `externalized`, ...: who or what hid them."""
    redacted: bool = False
    """They were hidden before, for the same reason; only the texts lost what quoted other blocks that
    are hidden on request since."""
    tokens_before: int = 0
    """Of the whole request before the first of a compaction that folded nothing; 0: not known."""
    tokens_after: int = 0
    """Of the whole request around a compaction that folded nothing, in its last event; 0: in none."""


class BlocksRestored(BaseEvent, frozen=True, kw_only=True, tag="BlocksRestored"):
    """Hidden blocks are shown as themselves again."""

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
    """What stands for the range."""
    carried: tuple[Carried, ...] = ()
    """Blocks of the range that are shown all the same, oldest first."""
    state: FoldState = FoldState()
    """The fold's numbers just before `cut`."""
    trigger: Trigger = "proactive"
    """Why: `proactive`, `cold` or `forced`."""
    tokens_before: int = 0
    """Of the whole request, before the first rung of the compaction."""
    tokens_after: int = 0
    """The same after its last rung."""
    policy: str = ""
    """Hash of the policy that decided."""
    provenance: Provenance | None = None
    """Who wrote the summary, and what that cost; None: no model."""
    ordinal: int = 0
    """Which summary of its turn it wrote; 0: not known, so that the summary is named by version."""


class RangeExpanded(BaseEvent, frozen=True, kw_only=True, tag="RangeExpanded"):
    """A compaction was undone; what it folded is visible again."""

    compaction: int
    """Version of the `RangeCompacted`."""


class SummaryReplaced(BaseEvent, frozen=True, kw_only=True, tag="SummaryReplaced"):
    """A summary was rewritten later."""

    compaction: int
    """Version of the compaction whose summary it was."""
    summary: RangeSummary
    """The new one."""
    provenance: Provenance | None = None
    """Who wrote it, and what that cost; None: no model."""
    redacted: bool = False
    """It is the summary before, without what it said of blocks that were hidden on request since."""


class SummaryPrepared(BaseEvent, frozen=True, kw_only=True, tag="SummaryPrepared"):
    """A model has summarised a range; whoever folds that range need not pay for it again."""

    key: str
    """What it is found by: see `render.summary_key`."""
    cut: int
    """Version of the first block that it does not cover."""
    summary: StructuredSummary
    """What the model wrote."""
    provenance: Provenance
    """Which model, and what that cost."""


class CompactionSkipped(BaseEvent, frozen=True, kw_only=True, tag="CompactionSkipped"):
    """A compaction was due and did not happen."""

    reason: SkipReason
    """`no_gain`, `no_cut`, `vetoed`, `failed` or `cannot_fit`."""
    tokens: int = 0
    """Visible tokens at that moment."""
    detail: str = ""
    """The same in words, where there is more to say."""


class RequestRendered(BaseEvent, frozen=True, kw_only=True, tag="RequestRendered"):
    """A request was handed out; from now on the provider may hold its prefix in its cache."""

    content_hash: str
    """Of all that was handed out."""
    tokens: int
    """Estimated size."""
    shown: int = 0
    """Version of the view that was rendered: what came later was not in the request."""
    cache_points: tuple[int, ...] = ()
    """Versions of the blocks that carry one, oldest first; the last is the tail."""
    prefix_hash: str = ""
    """Of what stands before the last cache point."""
    sent: str = ""
    """Hash of system, tools and all content, cache marks aside: what thinking is bound to."""
    ttl: float = 300.0
    """Seconds for which the provider may hold it."""
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts whose content it showed after the tail."""


class UsageRecorded(BaseEvent, frozen=True, kw_only=True, tag="UsageRecorded"):
    """What the provider said that a request had cost, in tokens."""

    model: str = ""
    """As the provider named it."""
    response: str = ""
    """Id of the response."""
    uncached: int = 0
    """Prompt tokens at the ordinary price."""
    cache_read: int = 0
    """Prompt tokens that were read from the cache."""
    cache_write: int = 0
    """Prompt tokens that were written to the cache."""
    output: int = 0
    """Tokens of the answer."""
    estimated: int = 0
    """Our uncalibrated estimate of the same request; 0: unknown."""

    @property
    def input(self) -> int:
        """The whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


class TokensCounted(BaseEvent, frozen=True, kw_only=True, tag="TokensCounted"):
    """What the provider's counting endpoint said of a request that was not sent."""

    model: str = ""
    """For which it counted."""
    input: int = 0
    """The whole prompt."""
    estimated: int = 0
    """Our uncalibrated estimate of the same request."""


class TimelineForked(BaseEvent, frozen=True, kw_only=True, tag="TimelineForked"):
    """This timeline began as a copy of another."""

    parent: TimelineId
    """The other timeline."""
    version: int
    """Up to which it was copied."""


class OpaqueEvent:
    """An event of a kind that this version does not know; it is kept and re-emitted as it was."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.fields = fields
        """Everything but the kind; not to be changed."""

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
        """As it was appended."""
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
    | CompactionSkipped
    | RequestRendered
    | UsageRecorded
    | TokensCounted
    | TimelineForked
)

if TYPE_CHECKING:
    Event: TypeAlias = KnownEvent | OpaqueEvent
    """One fact of a log, of any kind."""
else:
    Event = KnownEvent  # see the note at `Block`

Recorded: TypeAlias = tuple[int, Event]
"""An event with its version."""


def kind_of(event: Event) -> str:
    """The wire name of an event's kind."""
    if isinstance(event, OpaqueEvent):
        return event.kind
    return str(event.__struct_config__.tag)
