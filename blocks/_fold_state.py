"""The state of the fold that a compaction passes on: what a view needs to know about older events."""

from msgspec import Struct

from blocks._ids import ArtifactId, BlockId, TurnId


class Calibration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one model's real token counts differ from our estimates."""

    ratio: float = 1.0
    """Real tokens per estimated token, as requests grow."""
    prefix: float = 0.0
    """Tokens of every request that belong to no block."""
    samples: int = 0
    error_last: float = 0.0
    """Relative error of the last estimate: (estimate - real) / real."""
    estimated_last: int = 0
    real_last: int = 0
    """The newest sample."""
    estimated_growth: float = 0.0
    real_growth: float = 0.0
    """Growth from sample to sample, older samples weighted less; the ratio is computed from this."""
    limit: int = 0
    """The most tokens that the provider accepts, as its latest refusal said; 0: none did."""


class Waiting(Struct, frozen=True, kw_only=True):
    """A request without an answer."""

    shown: int
    """Version of the view that it showed."""
    sent: str
    """Hash of what it sent."""
    at: float


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The paths that a log has given, as far as later paths depend on them; see `Naming`."""

    turn: TurnId = TurnId("")
    """The turn whose blocks are counted, or would be."""
    is_counted: bool = True
    """Whether its blocks are counted, because no other turn has begun since."""
    last_turn: int = 0
    """The largest n of turns named t<n>."""
    turns: str | None = ""
    """A filter of the names of other turns; None: not known."""
    calls: str | None = ""
    """A filter of the paths of folded calls of the current turn; None: not known."""


class Agreed(Struct, frozen=True, kw_only=True):
    """How much of a foreign history is in the log."""

    pieces: int
    """Number of its pieces from the beginning, without the system prompt; a piece is what becomes one block, not
    counting content that only a provider reads."""
    chain: str
    """Hash of their contents, in order."""


class FoldState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the fold just before a version."""

    parent: str = ""
    """The timeline of which this one began as a copy; empty: none."""
    turns: int = 0
    turn: TurnId = TurnId("")
    """The current turn."""
    rounds: int = 0
    blocks: int = 0
    touched_at: float = 0.0
    """When the last request started, or 0."""
    ttl: float = 0.0
    """Time to live of its cache points, in seconds."""
    prefix_hash: str = ""
    """Hash of the system text and tools of the last request."""
    tail: int = 0
    """Version of the block that carried the last request's tail cache point."""
    tail_before: int = 0
    """The same for the latest request with another tail, which a repeated request must be able to find."""
    tokens: int = 0
    """Estimated size of the last request."""
    shown: int = 0
    """Version of the view that the last request showed."""
    waiting: tuple[Waiting, ...] = ()
    """Requests that have no answer yet, the newest last, if the log has a hash of what was sent."""
    failures: int = 0
    """Skipped or failed compactions in a row."""
    failed_tokens: int = 0
    """Visible tokens at the last failure, from which the circuit breaker measures growth."""
    summaries: int = 0
    """Calls made for summaries so far, with those that failed."""
    calibrations: dict[str, Calibration] = {}
    """By model name."""
    rehydrated: dict[ArtifactId, int] = {}
    """Artifacts that came back into a prompt: the turn (counted from 1) in which they last did."""
    ordinals: dict[str, int] = {}
    """Number of blocks so far by path stem, in a turn that continues after the cut."""
    named: Named | None = None
    """Further data on which paths depend; None: written by an older version of foldline."""
    withheld: dict[BlockId, ArtifactId] = {}
    """Blocks that are hidden on request, including folded ones, and the artifact ids of their contents; no request may
    show either."""
    agreed: Agreed | None = None
    """How much of a foreign history is in the log."""
    agreed_at: int = 0
    """Version of its last block."""
    sources: str = ""
    """A filter of the sources and responses of folded blocks; see `Sources`."""
