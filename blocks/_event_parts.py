"""What events are made of: blocks that are hidden or carried, reasons, and who wrote a summary."""

from typing import Literal, TypeAlias

from msgspec import Struct

from blocks._block import Block
from blocks._ids import ArtifactId, BlockId
from blocks._summary import DroppedSpan

HideReason: TypeAlias = Literal[
    "expired", "requested", "cleared", "externalized", "dropped", "clipped", "unsigned"
]
"""Why a block is hidden; `clipped`: too large for one step, `unsigned`: thinking whose signature
no longer matches what precedes it."""

SkipReason: TypeAlias = Literal["no_gain", "no_cut", "vetoed", "failed", "cannot_fit"]
"""Why a compaction that was due did not happen."""
Trigger: TypeAlias = Literal["proactive", "cold", "forced"]
"""Why a compaction is made: the prompt grows too large, the cache has expired, somebody asked."""


class Answered(Struct, frozen=True, kw_only=True):
    """The request that a response answers."""

    shown: int
    """Version of the view that it showed."""
    sent: str
    """Hash of what it sent; see `RequestRendered`."""


class Hidden(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One block that is shown as something shorter."""

    block: BlockId
    """Its id."""
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


class Carried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block that outlives the cut that folded its surroundings."""

    version: int
    """At which it was appended."""
    block: Block
    """It, whole."""
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
