"""A compaction as data: which block is to become what, decided but not done.

    include < clear < summarize < externalize < drop

Every rung proposes; a block that several proposals name goes by the one on the right.  A plan holds
ids and texts and nothing else: it can be shown, written as JSON, tested, and committed later, as long
as the timeline is still at the version that it was made for, also where the rungs that made it are not
known.
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
"""What a plan does with a block; of two that name it the later here counts."""
PRECEDENCE: Final[Mapping[str, int]] = {
    action: rank
    for rank, action in enumerate(("include", "clear", "summarize", "externalize", "drop"))
}
PLAN_FORMAT: Final = 1


class Proposal(Struct, frozen=True, kw_only=True, tag_field="action", omit_defaults=True):
    """What one rung would do with a span of blocks. Never instantiated."""

    hidden_as: ClassVar[HideReason | None] = None
    """Why the blocks count as hidden once it is done; None: they become part of a summary."""

    blocks: Annotated[tuple[BlockId, ...], Meta(min_length=1)]
    """In log order; never empty."""
    first: int
    last: int
    """Versions of the oldest and the newest of them."""
    turns: tuple[TurnId, ...] = ()
    tokens_freed: int = 0
    """What the request is shorter by, before what later rungs do."""
    reason: str = ""

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """What is shown instead of the blocks."""
        return ()


class Externalize(Proposal, frozen=True, kw_only=True, tag="externalize"):
    """Move one result to the artifact store and leave a pointer."""

    hidden_as: ClassVar[HideReason | None] = "externalized"
    artifact: ArtifactId
    replacement: str
    """The pointer, with what is worth knowing without reading the artifact."""
    path: str
    sensitivity: Sensitivity = "internal"

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The pointer; before it is committed, the content is stored."""
        block = self.blocks[0]
        return (Hidden(block=block, replacement=self.replacement, artifact=self.artifact),)


class Summarize(Proposal, frozen=True, kw_only=True, tag="summarize"):
    """Put everything before a cut into a summary with a digest."""

    cut: int
    """Version of the first kept block."""
    squeeze: float = 1.0
    """Factor on the shares of what a compaction leaves, where they would not fit otherwise."""
    source_hash: str
    """Of what is summarised."""


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
        """The line, in the place of the first block; nothing for the others."""
        first = self.blocks[0]
        line = Hidden(block=first, replacement=self.replacement, dropped=self.entry)
        return line, *(Hidden(block=block) for block in self.blocks if block != first)


AnyProposal: TypeAlias = Externalize | Summarize | Clear | Drop
"""What a rung may propose."""


class CompactionPlan(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What a compaction would do to a timeline. Pure data; equal logs give equal plans."""

    format: int = PLAN_FORMAT
    timeline: TimelineId = TimelineId("")
    version: int
    """Of the view that it was made for; it can be committed only there."""
    trigger: Trigger
    policy: str = ""
    limit: int = 0
    target: int = 0
    """Tokens that the request should come under."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the whole request, with the extractive summary."""
    proposals: tuple[AnyProposal, ...] = ()
    """In the order in which the rungs were tried."""

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
        """What becomes of each block that is named; all others are included."""
        return normalised(self.proposals)[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Blocks that more than one proposal names, and which of them counts."""
        return normalised(self.proposals)[1]

    def action(self, block: BlockId) -> Action:
        """What becomes of one block."""
        return self.actions.get(block, "include")

    @property
    def rungs(self) -> tuple[str, ...]:
        """The actions that are proposed, in the order in which the rungs were tried."""
        return tuple(dict.fromkeys(action_of(proposal) for proposal in self.proposals))

    @property
    def digest(self) -> str:
        """SHA-256 of the plan: its name wherever it is committed."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def to_json(self) -> bytes:
        """The plan as JSON, to be shown or kept; equal plans give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"))

    @classmethod
    def from_json(cls, data: bytes | str) -> "CompactionPlan":
        """The plan in a text that `to_json` gave.

        Raises:
            DataError: it is no plan, or one of a newer format.
        """
        try:
            plan = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise DataError(f"not a compaction plan: {error}") from error
        if plan.format != PLAN_FORMAT:
            raise DataError(f"a plan of format {plan.format}; this version reads {PLAN_FORMAT}")
        return plan


def action_of(proposal: AnyProposal) -> Action:
    """What a proposal would do."""
    return cast("Action", proposal.__struct_config__.tag)


def in_force(proposals: Iterable[AnyProposal]) -> list[AnyProposal]:
    """The proposals, in order, without those of which an earlier one has made more already."""
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
