"""A compaction plan as data: the action proposed for each block, not yet applied.

    include < clear < summarize < externalize < drop

If several proposals name a block, the rightmost action counts. A plan holds only ids and texts. It can be
shown, written as JSON, tested, and committed later while the timeline is still at the plan's version, even
where the rungs that made it are unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct

from blocks import (
    ArtifactId,
    BlockId,
    DataError,
    DroppedSpan,
    Hidden,
    HideReason,
    Sensitivity,
    TimelineId,
    Trigger,
    TurnId,
)

Action: TypeAlias = Literal["include", "clear", "summarize", "externalize", "drop"]
"""What a plan does with a block; if two proposals name it, the later action in this list counts."""
PRECEDENCE: Final[Mapping[str, int]] = {
    action: rank
    for rank, action in enumerate(("include", "clear", "summarize", "externalize", "drop"))
}
PLAN_FORMAT: Final = 1


class Proposal(Struct, frozen=True, kw_only=True, tag_field="action", omit_defaults=True):
    """What one rung proposes for a span of blocks. Base class, never instantiated."""

    hidden_as: ClassVar[HideReason | None] = None
    """The reason recorded when the blocks are hidden; None: they become part of a summary."""

    blocks: Annotated[tuple[BlockId, ...], Meta(min_length=1)]
    """Ids in log order; never empty."""
    first: int
    last: int
    """Versions of the oldest and the newest block."""
    turns: tuple[TurnId, ...] = ()
    tokens_freed: int = 0
    """Tokens by which the request gets shorter, before later rungs are applied."""
    reason: str = ""

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The replacements for the blocks."""
        return ()


class Externalize(Proposal, frozen=True, kw_only=True, tag="externalize"):
    """Move one result to the artifact store and leave a pointer."""

    hidden_as: ClassVar[HideReason | None] = "externalized"
    artifact: ArtifactId
    replacement: str
    """The pointer, with excerpts of the content."""
    path: str
    sensitivity: Sensitivity = "internal"

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The pointer. The content is stored before the event is committed."""
        block = self.blocks[0]
        return (Hidden(block=block, replacement=self.replacement, artifact=self.artifact),)


class Summarize(Proposal, frozen=True, kw_only=True, tag="summarize"):
    """Put everything before a cut into a summary with a digest."""

    cut: int
    """Version of the first kept block."""
    squeeze: float = 1.0
    """Factor on the policy's shares, below 1 if the request would not fit otherwise."""
    source_hash: str
    """Hash of what is summarised."""


class Clear(Proposal, frozen=True, kw_only=True, tag="clear"):
    """Show one result as a placeholder with its key fields."""

    hidden_as: ClassVar[HideReason | None] = "cleared"
    replacement: str

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The placeholder."""
        return (Hidden(block=self.blocks[0], replacement=self.replacement),)


class Drop(Proposal, frozen=True, kw_only=True, tag="drop"):
    """Take a span out of the prompt and leave one line that says how to find it."""

    hidden_as: ClassVar[HideReason | None] = "dropped"
    entry: DroppedSpan
    replacement: str

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The line, in place of the first block; nothing for the others."""
        first = self.blocks[0]
        line = Hidden(block=first, replacement=self.replacement, dropped=self.entry)
        return line, *(Hidden(block=block) for block in self.blocks if block != first)


AnyProposal: TypeAlias = Externalize | Summarize | Clear | Drop
"""Any proposal of a rung."""


class CompactionPlan(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What a compaction would do to a timeline. Pure data; equal logs give equal plans."""

    format: int = PLAN_FORMAT
    timeline: TimelineId = TimelineId("")
    version: int
    """Version of the view that the plan was made for; it can be committed only at this version."""
    trigger: Trigger
    policy: str = ""
    limit: int = 0
    target: int = 0
    """The request should have fewer tokens than this."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Tokens of the whole request afterwards, with the extractive summary."""
    proposals: tuple[AnyProposal, ...] = ()
    """The proposals, in the order in which the rungs were tried."""

    def __repr__(self) -> str:
        proposed = ", ".join(f"{rung} {count}" for rung, count in self._counts().items())
        return (
            f"<CompactionPlan for {self.timeline!r}, version {self.version}: "
            f"{self.tokens_before:,} to {self.tokens_after:,} tokens; {proposed or 'nothing'}>"
        )

    def _counts(self) -> Mapping[str, int]:
        return Counter(action_of(proposal) for proposal in self.proposals)

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
        return tuple(dict.fromkeys(action_of(proposal) for proposal in self.proposals))

    @property
    def digest(self) -> str:
        """SHA-256 of the plan, by which events refer to it."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def to_json(self) -> bytes:
        """The plan as JSON; equal plans give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"))

    @classmethod
    def from_json(cls, data: bytes | str) -> "CompactionPlan":
        """The plan in a text that `to_json` gave.

        Raises:
            DataError: it is not a plan, or it has a newer format.
        """
        try:
            plan = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise DataError(f"not a compaction plan: {error}") from error
        if plan.format != PLAN_FORMAT:
            raise DataError(f"a plan of format {plan.format}; this version reads {PLAN_FORMAT}")
        return plan


def action_of(proposal: AnyProposal) -> Action:
    """The action that a proposal proposes."""
    return cast("Action", proposal.__struct_config__.tag)


def in_force(proposals: Iterable[AnyProposal]) -> list[AnyProposal]:
    """The proposals in order, without those (except `Summarize`) whose first block already has a stronger
    action."""
    done: dict[BlockId, Action] = {}
    found: list[AnyProposal] = []
    for proposal in proposals:
        action = action_of(proposal)
        before = done.get(proposal.blocks[0], "include")
        if PRECEDENCE[before] > PRECEDENCE[action] and not isinstance(proposal, Summarize):
            continue
        found.append(proposal)
        done |= dict.fromkeys(proposal.blocks, action)
    return found


def normalised(
    proposals: Iterable[AnyProposal],
) -> tuple[Mapping[BlockId, Action], tuple[str, ...]]:
    """One action for each block, and a warning for each block with several."""
    actions: dict[BlockId, Action] = {}
    warnings: list[str] = []
    for proposal in proposals:
        new = action_of(proposal)
        for block in proposal.blocks:
            old = actions.get(block)
            if old is None or old == new:
                actions[block] = new
                continue
            actions[block] = max(old, new, key=PRECEDENCE.__getitem__)
            warnings.append(f"{block}: {old} and {new}; {actions[block]} counts")
    return actions, tuple(warnings)
