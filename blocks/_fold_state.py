"""The numbers of the fold that a compaction hands on: what a view needs to know of everything older."""

from msgspec import Struct

from blocks._ids import ArtifactId, BlockId, TurnId


class Calibration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one model's real counts are from our estimates."""

    ratio: float = 1.0
    """Real tokens per estimated token, as requests grow."""
    prefix: float = 0.0
    """Tokens that every request has and no block explains."""
    samples: int = 0
    error_last: float = 0.0
    """Relative error of the last estimate: (estimate - real) / real."""
    estimated_last: int = 0
    real_last: int = 0
    """The newest sample."""
    estimated_growth: float = 0.0
    real_growth: float = 0.0
    """From sample to sample, the older ones fading: what the ratio is made of."""


class Waiting(Struct, frozen=True, kw_only=True):
    """A request without an answer."""

    shown: int
    """Version of the view that it showed."""
    sent: str
    """Hash of what it sent."""
    at: float


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which paths a log has given, as far as the next ones depend on it; see `Naming`."""

    turn: TurnId = TurnId("")
    """The turn that is counted, or would be."""
    is_counted: bool = True
    """Whether its blocks are counted: it is in its first stretch."""
    last_turn: int = 0
    """The largest n of turns named t<n>."""
    turns: str | None = ""
    """A filter of the names of other turns; None: not known."""
    calls: str | None = ""
    """A filter of the paths of folded calls of the current turn; None: not known."""


class Agreed(Struct, frozen=True, kw_only=True):
    """How much of a foreign history is in a log."""

    pieces: int
    """So many, from its beginning, without the system prompt: what is a block each, but for what only a
    provider reads."""
    chain: str
    """Hash of their contents, in their order."""


class FoldState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The few numbers of the fold as they stood just before a version."""

    turns: int = 0
    turn: TurnId = TurnId("")
    """The current turn."""
    rounds: int = 0
    blocks: int = 0
    touched_at: float = 0.0
    """When the last request started, or 0."""
    ttl: float = 0.0
    """Seconds that its cache points were to live."""
    prefix_hash: str = ""
    """Hash of the system text and tools of the last request."""
    tail: int = 0
    """Version of the block that carried the last request's tail cache point."""
    tail_before: int = 0
    """The same of the latest request that had another tail: what a repeated request must find."""
    tokens: int = 0
    """Estimated size of the last request."""
    shown: int = 0
    """Version of the view that the last request showed."""
    waiting: tuple[Waiting, ...] = ()
    """Requests that have no answer yet, as far as the log says what was sent, the newest last."""
    failures: int = 0
    """Skipped or failed compactions in a row."""
    failed_tokens: int = 0
    """Visible tokens at the last failure; the breaker opens again from there."""
    summaries: int = 0
    """Model calls made for summaries so far."""
    calibrations: dict[str, Calibration] = {}
    """By model name."""
    rehydrated: dict[ArtifactId, int] = {}
    """Artifacts that came back into a prompt: the turn (counted from 1) in which they last did."""
    ordinals: dict[str, int] = {}
    """Blocks so far by path stem, in a turn that goes on after the cut."""
    named: Named | None = None
    """What paths depend on besides; None: an older version has written this."""
    withheld: dict[BlockId, ArtifactId] = {}
    """Blocks that are hidden on request, folded ones included, and the artifact id of their content:
    nothing that is sent may show either."""
    agreed: Agreed | None = None
    """How much of a foreign history is there."""
    agreed_at: int = 0
    """Version of the last block of it."""
    sources: str = ""
    """A filter of the sources and responses of folded blocks; see `Sources`."""
