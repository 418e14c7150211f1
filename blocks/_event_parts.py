"""Parts of events: hidden and carried blocks, reasons, the provenance of a summary, and the bill of a call."""

from typing import Literal, TypeAlias

from msgspec import Struct

from blocks._block import Block
from blocks._ids import ArtifactId, BlockId
from blocks._summary import DroppedSpan

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
