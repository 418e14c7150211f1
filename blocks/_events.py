"""Events: facts about a timeline, in the past tense, never edited.

A version is a position in one timeline's log, counted from 1; a block's version is that of the
event which appended it.
"""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from blocks._block import Block, RangeSummary
from blocks._fold_state import Agreed, FoldState
from blocks._ids import ArtifactId, BlockId, EventId, TimelineId
from blocks._summary import DroppedSpan, StructuredSummary

HideReason: TypeAlias = Literal[
    "expired", "requested", "cleared", "externalized", "dropped", "clipped", "unsigned"
]
"""Why a block is hidden; `clipped`: too large for one step, `unsigned`: thinking whose signature
no longer matches what precedes it."""

SkipReason: TypeAlias = Literal["no_gain", "no_cut", "vetoed", "failed", "cannot_fit"]
Trigger: TypeAlias = Literal["proactive", "cold", "forced"]


class BaseEvent(
    Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, weakref=False
):
    """Fields every event has. Never instantiated; annotate with `Event`."""

    id: EventId
    at: float
    """Seconds since the epoch."""


class Answered(Struct, frozen=True, kw_only=True):
    """The request that a response answers."""

    shown: int
    """Version of the view that it showed."""
    sent: str
    """Hash of what it sent; see `RequestRendered`."""


class BlockAppended(BaseEvent, frozen=True, kw_only=True, tag="BlockAppended"):
    """A block joined the timeline."""

    block: Block
    answers: Answered | None = None
    """Of the first block of a response: the request that it answers; None: the newest."""
    agrees: Agreed | None = None
    """Of the last block of a message of a foreign history: with it, so much of that is there."""


class Hidden(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One block that is shown as something shorter."""

    block: BlockId
    replacement: str = ""
    """What the model reads instead; empty: nothing stands for it."""
    artifact: ArtifactId = ArtifactId("")
    """Id of the content in the artifact store: where it was moved or, of a block that somebody hid on
    request, what must not come back from there."""
    dropped: DroppedSpan | None = None
    """Of the first block of a span that was dropped: what stands for all of it."""
    head: int = 0
    tail: int = 0
    """Characters of the block's own text that are shown before and behind the replacement: of what may
    not be quoted here."""


class BlocksHidden(BaseEvent, frozen=True, kw_only=True, tag="BlocksHidden"):
    """Blocks are shown as their replacements from now on; one event for a whole batch."""

    hidden: tuple[Hidden, ...]
    reason: HideReason
    redacted: bool = False
    """They were hidden before, for the same reason; only the texts lost what quoted other blocks that
    are hidden on request since."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the whole request around a compaction that folded nothing, in its last event; 0: in none."""


class BlocksRestored(BaseEvent, frozen=True, kw_only=True, tag="BlocksRestored"):
    """Hidden blocks are shown as themselves again."""

    blocks: tuple[BlockId, ...]


class Carried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block that outlives the cut that folded its surroundings."""

    version: int
    block: Block
    ordinal: int = 1
    """Which of its turn's blocks with the same path stem it is; 0: it is named by version."""
    clipped: str = ""
    """What is shown instead, when the whole would not fit its share."""
    withheld: bool = False
    """Hidden on request: nothing but `clipped` is shown, even if that is empty."""


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
    reused: bool = False
    """Another timeline had paid for a summary of equal content: nobody was asked, nothing spent."""


class RangeCompacted(BaseEvent, frozen=True, kw_only=True, tag="RangeCompacted"):
    """Everything from `start` up to, not including, `cut` is folded into `summary`.

    The size is constant apart from the summary and what is carried: two versions, never a list of
    ids.  Loading a timeline reads this event and those from `cut` on, nothing older.
    """

    start: int
    cut: int
    summary: RangeSummary
    carried: tuple[Carried, ...] = ()
    state: FoldState = FoldState()
    """The fold's numbers just before `cut`."""
    trigger: Trigger = "proactive"
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the whole request, before the first rung of the compaction and after its last."""
    policy: str = ""
    """Hash of the policy that decided."""
    provenance: Provenance | None = None
    ordinal: int = 0
    """Which summary of its turn it wrote; 0: not known, so that the summary is named by version."""


class RangeExpanded(BaseEvent, frozen=True, kw_only=True, tag="RangeExpanded"):
    """A compaction was undone; what it folded is visible again."""

    compaction: int
    """Version of the `RangeCompacted`."""


class SummaryReplaced(BaseEvent, frozen=True, kw_only=True, tag="SummaryReplaced"):
    """A summary was rewritten later."""

    compaction: int
    summary: RangeSummary
    provenance: Provenance | None = None
    redacted: bool = False
    """It is the summary before, without what it said of blocks that were hidden on request since."""


class SummaryPrepared(BaseEvent, frozen=True, kw_only=True, tag="SummaryPrepared"):
    """A model has summarised a range; whoever folds that range need not pay for it again."""

    key: str
    """What it is found by: see `render.summary_key`."""
    cut: int
    """Version of the first block that it does not cover."""
    summary: StructuredSummary
    provenance: Provenance


class CompactionSkipped(BaseEvent, frozen=True, kw_only=True, tag="CompactionSkipped"):
    """A compaction was due and did not happen."""

    reason: SkipReason
    tokens: int = 0
    """Visible tokens at that moment."""
    detail: str = ""


class RequestRendered(BaseEvent, frozen=True, kw_only=True, tag="RequestRendered"):
    """A request was handed out; from now on the provider may hold its prefix in its cache."""

    content_hash: str
    tokens: int
    """Estimated size."""
    shown: int = 0
    """Version of the view that was rendered: what came later was not in the request."""
    cache_points: tuple[int, ...] = ()
    """Versions of the blocks that carry one, oldest first; the last is the tail."""
    prefix_hash: str = ""
    sent: str = ""
    """Hash of system, tools and all content, cache marks aside: what thinking is bound to."""
    ttl: float = 300.0
    rehydrated: tuple[ArtifactId, ...] = ()
    """Artifacts whose content it showed after the tail."""


class UsageRecorded(BaseEvent, frozen=True, kw_only=True, tag="UsageRecorded"):
    """What the provider said that a request had cost, in tokens."""

    model: str = ""
    response: str = ""
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    estimated: int = 0
    """Our uncalibrated estimate of the same request; 0: unknown."""

    @property
    def input(self) -> int:
        """The whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


class TokensCounted(BaseEvent, frozen=True, kw_only=True, tag="TokensCounted"):
    """What the provider's counting endpoint said of a request that was not sent."""

    model: str = ""
    input: int = 0
    """The whole prompt."""
    estimated: int = 0
    """Our uncalibrated estimate of the same request."""


class TimelineForked(BaseEvent, frozen=True, kw_only=True, tag="TimelineForked"):
    """This timeline began as a copy of another."""

    parent: TimelineId
    version: int


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
        return EventId(str(self.fields.get("id", "")))

    @property
    def at(self) -> float:
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
else:
    Event = KnownEvent  # see the note at `Block`

Recorded: TypeAlias = tuple[int, Event]
"""An event with its version."""


def kind_of(event: Event) -> str:
    """The wire name of an event's kind."""
    if isinstance(event, OpaqueEvent):
        return event.kind
    return str(event.__struct_config__.tag)
