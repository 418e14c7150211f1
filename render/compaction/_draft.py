"""The draft of a compaction as data: the action proposed for each block, not yet applied.

    include < clear < summarize < externalize < drop

If several proposals name a block, the rightmost action counts. A draft holds only ids and texts. It can be
shown, written as JSON, tested, and committed later while the timeline is still at the draft's version, even
where the rungs that made it are unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Final, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Meta, Struct

from blocks import (
    ArtifactId,
    BlockId,
    Carried,
    DataError,
    DroppedSpan,
    Hidden,
    HideReason,
    Sensitivity,
    TimelineId,
    Trigger,
    TurnId,
)
from render.policy._policy import RungName
from render.view._view import Entry

Action: TypeAlias = Literal["include", "clear", "summarize", "externalize", "drop"]
"""What a draft does with a block; if two proposals name it, the later action in this list counts."""
PRECEDENCE: Final[Mapping[str, int]] = {
    action: rank
    for rank, action in enumerate(("include", "clear", "summarize", "externalize", "drop"))
}
HIDE_REASONS: Final[Mapping[str, HideReason]] = {
    "externalize": "externalized",
    "clear": "cleared",
    "drop": "dropped",
}
"""The reason that is recorded when the blocks of a proposal are hidden."""
DRAFT_FORMAT: Final = 1
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "externalize": ("artifact", "path"),
    "summarize": ("cut", "source_hash"),
    "clear": (),
    "drop": ("entry",),
}
"""The fields that a proposal must have, by action."""


class Proposal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rung proposes for a span of blocks. Without a field that its action needs, it is refused (`ValueError`)."""

    action: RungName
    blocks: Annotated[tuple[BlockId, ...], Meta(min_length=1)]
    """Ids in log order; never empty."""
    first: int
    last: int
    """Versions of the oldest and the newest block."""
    turns: tuple[TurnId, ...] = ()
    tokens_freed: int = 0
    """Tokens by which the request gets shorter, before later rungs are applied."""
    reason: str = ""
    cut: int = 0
    """Summarize: version of the first kept block."""
    squeeze: float = 1.0
    """Summarize: factor on the policy's shares, below 1 if the request would not fit otherwise."""
    source_hash: str = ""
    """Summarize: hash of what is summarised."""
    entry: DroppedSpan | None = None
    """Drop: what is known of the span."""
    artifact: ArtifactId = ArtifactId("")
    """Externalize: id of the artifact that will hold the content."""
    replacement: str = ""
    """Clear, externalize, drop: the text in place of the first block: a placeholder, a pointer with excerpts, a line."""
    path: str = ""
    """Externalize: path of the result."""
    sensitivity: Sensitivity = "internal"
    """Externalize: sensitivity of the result."""

    def __post_init__(self) -> None:
        missing = [name for name in _NEEDED.get(self.action, ()) if not getattr(self, name)]
        if missing:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """What is shown in place of the blocks: the replacement at the first, nothing at the others. The content of an
        artifact is stored before. Empty for `summarize`, whose blocks become part of a summary."""
        if self.action == "summarize":
            return ()
        first = self.blocks[0]
        shown = Hidden(
            block=first, replacement=self.replacement, artifact=self.artifact, dropped=self.entry
        )
        return shown, *(Hidden(block=block) for block in self.blocks if block != first)


class CompactionDraft(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What a compaction would do to a timeline. Pure data; equal logs give equal drafts."""

    format: int = DRAFT_FORMAT
    timeline: TimelineId = TimelineId("")
    version: int
    """Version of the view that the draft was made for; it can be committed only at this version."""
    trigger: Trigger
    policy: str = ""
    limit: int = 0
    target: int = 0
    """The request should have fewer tokens than this."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Tokens of the whole request afterwards, with the extractive summary."""
    proposals: tuple[Proposal, ...] = ()
    """The proposals, in the order in which the rungs were tried."""

    def __repr__(self) -> str:
        counts = Counter(proposal.action for proposal in self.proposals)
        proposed = ", ".join(f"{rung} {count}" for rung, count in counts.items())
        return (
            f"<CompactionDraft for {self.timeline!r}, version {self.version}: "
            f"{self.tokens_before:,} to {self.tokens_after:,} tokens; {proposed or 'nothing'}>"
        )

    @property
    def actions(self) -> Mapping[BlockId, Action]:
        """The action for each named block; all other blocks are included."""
        return normalised(self.proposals)[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One text for each block that proposals with different actions name: the actions, and which counts."""
        return normalised(self.proposals)[1]

    def action(self, block: BlockId) -> Action:
        """The action for one block."""
        return self.actions.get(block, "include")

    @property
    def rungs(self) -> tuple[str, ...]:
        """The actions that are proposed, in the order in which the rungs were tried."""
        return tuple(dict.fromkeys(proposal.action for proposal in self.proposals))

    @property
    def digest(self) -> str:
        """SHA-256 of the draft, by which events refer to it."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def to_json(self) -> bytes:
        """The draft as JSON; equal drafts give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"))

    @classmethod
    def from_json(cls, data: bytes | str) -> "CompactionDraft":
        """The draft in a text that `to_json` gave.

        Raises:
            DataError: it is not a draft, or it has a newer format.
        """
        try:
            draft = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise DataError(f"not a draft of a compaction: {error}") from error
        if draft.format != DRAFT_FORMAT:
            raise DataError(
                f"the draft has format {draft.format}, and this version reads format {DRAFT_FORMAT}"
            )
        return draft


def in_force(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals in order, without those (except a summary) whose first block already has a stronger
    action."""
    done: dict[BlockId, Action] = {}
    found: list[Proposal] = []
    for proposal in proposals:
        action = proposal.action
        before = done.get(proposal.blocks[0], "include")
        if PRECEDENCE[before] > PRECEDENCE[action] and action != "summarize":
            continue
        found.append(proposal)
        done |= dict.fromkeys(proposal.blocks, action)
    return found


def normalised(
    proposals: Iterable[Proposal],
) -> tuple[Mapping[BlockId, Action], tuple[str, ...]]:
    """One action for each block, and a warning for each block with several."""
    actions: dict[BlockId, Action] = {}
    warnings: list[str] = []
    for proposal in proposals:
        new = proposal.action
        for block in proposal.blocks:
            old = actions.get(block)
            if old is None or old == new:
                actions[block] = new
                continue
            actions[block] = max(old, new, key=PRECEDENCE.__getitem__)
            warnings.append(f"{block}: {old} and {new}; {actions[block]} counts")
    return actions, tuple(warnings)


# The range that a summary replaces. It lives no longer than the view that it was made for.


@attrs.frozen(kw_only=True)
class FoldRange:
    """What a compaction would fold: pure data that refers to versions of the log."""

    version: int
    """Version of the view that the range was made for."""
    trigger: Trigger
    start: int
    """Version of the first folded block."""
    cut: int
    """Version of the first kept block."""
    folded: tuple[Entry, ...] = attrs.field(repr=False)
    kept: tuple[Entry, ...] = attrs.field(repr=False)
    carried: tuple[Carried, ...] = attrs.field(repr=False)
    cuts: tuple[Hidden, ...] = attrs.field(default=(), repr=False)
    """The cuts of the kept results that requests have shown and that exceed their share."""
    given_up: tuple[Entry, ...] = attrs.field(default=(), repr=False)
    """Entries that the last compaction carried in full and this one does not."""
    is_split: bool
    """Whether the cut splits a turn."""
    kept_tokens: int
    """Tokens of `kept` as it is shown."""
    tokens_before: int
    source_hash: str
    """Hash of the folded content (except what is hidden on request) and of the previous summary."""
