"""Why a request does not fit: which parts are too large, and how to make it fit."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import attrs

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    Note,
    Plan,
    RangeSummary,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from render.policy._context import Context
from render.policy._provider import Piece
from render.stages._budget import Account, target_of
from render.view._group import Entry, Group, as_shown
from render.view._view import Shown

PartKind: TypeAlias = Literal[
    "system prompt",
    "tools",
    "overhead",
    "summary",
    "prompt",
    "attachment",
    "note",
    "plan",
    "answer",
    "thinking",
    "call",
    "result",
    "notice",
    "block",
]
MisfitReason: TypeAlias = Literal["over_limit", "fixed_over_target"]
STAND_IN_TOKENS: Final[dict[PartKind, int]] = {"note": 25, "plan": 25, "call": 75, "thinking": 0}
"""Largest size of a hidden block: its replacement and its envelope; for an open call, also its answer."""
OTHER_STAND_IN_TOKENS: Final = 50
ALONE: Final = 0.8
"""If the largest block has at least this share of all blocks of its kind, only it is named."""
_KINDS: Final[tuple[tuple[type | tuple[type, ...], PartKind], ...]] = (
    ((UserPrompt, UserFollowup, UserSteer), "prompt"),
    (UserAttachment, "attachment"),
    (Note, "note"),
    (Plan, "plan"),
    (AssistantCompletion, "answer"),
    (AssistantThinking, "thinking"),
    (ToolCall, "call"),
    (ToolResult, "result"),
    (SystemMessage, "notice"),
    (RangeSummary, "summary"),
)

_Encoded: TypeAlias = tuple[Group, Piece]
"""A group as it is shown, and encoded."""


@attrs.frozen
class _Part:
    """One block as it is shown."""

    kind: PartKind
    path: str
    tokens: int
    removable: int = 0
    """Tokens that hiding the block would free."""


@attrs.frozen(kw_only=True)
class Cause:
    """A part of a request that is too large: all blocks of one kind, or a part without blocks."""

    kind: PartKind
    tokens: int
    """Tokens of all of them together, calibrated."""
    blocks: int = 0
    largest: str = ""
    """Path of the largest block."""
    removable: int = 0
    """Tokens that following the advice can free."""

    def __str__(self) -> str:
        if self.kind in {"system prompt", "tools", "summary"}:
            verb = "have" if self.kind == "tools" else "has"
            return f"the {self.kind} {verb} {self.tokens} tokens"
        if self.kind == "overhead":
            return f"the provider adds {self.tokens} tokens"
        if self.blocks == 1:
            return f"the {self.kind} at {self.largest} has {self.tokens} tokens"
        return f"{self.blocks} {self.kind}s have {self.tokens} tokens"

    @property
    def remedy(self) -> str:
        """What the caller can do about it; empty if nothing helps."""
        match self.kind:
            case "system prompt":
                return "shorten the system prompt"
            case "tools":
                return "give fewer or shorter tools"
            case "thinking":
                return "open the timeline with keep_thinking=False"
            case _ if not self.removable:
                return ""
            case _ if self.blocks == 1:
                return f"hide what is too large with timeline.hide({self.largest!r})"
            case _:
                return f"hide {self.kind}s with timeline.hide, {self.largest!r} first"


@attrs.frozen(kw_only=True)
class CannotFit:
    """Why the request exceeds its limit, or why no compaction can bring it below its target."""

    reason: MisfitReason
    total: int
    """Tokens of the request."""
    fixed: int
    """Tokens of the parts that no compaction can reduce: system prompt, tools, notes, open calls."""
    limit: int
    causes: tuple[Cause, ...] = ()
    """The parts that are too large, the largest first; without them the request would fit."""
    advice: str

    def __str__(self) -> str:
        causes = ", ".join(map(str, self.causes))
        if self.reason == "over_limit":
            return f"{self.total} tokens do not fit {self.limit}: {causes}; {self.advice}"
        return (
            f"of {self.total} tokens no compaction can reduce {self.fixed}: {causes}; {self.advice}"
        )


def cannot_fit(
    shown: Shown, sizes: Account, context: Context, unwilling: str = ""
) -> CannotFit | None:
    """Why a request is too large for its limit or target; None if it is not.

    `unwilling` is the reason why nothing made room, if that was a deliberate choice (such as a policy).
    """
    target, pieces = target_of(context), context.encoder.pieces(shown)
    opened = sum(part.tokens for part in _open(_encoded(shown.groups[-1:], pieces[-1:])))
    pinned = sum([piece.pinned for piece in pieces]) + opened
    fixed = sizes.system + sizes.tools + round(sizes.ratio * pinned)
    if sizes.total > context.limit:
        excess = sizes.total - context.limit
        parts = parts_of(_encoded(shown.groups, pieces))
        misfit = _misfit("over_limit", excess, parts, sizes, fixed)
        return attrs.evolve(misfit, advice=unwilling) if unwilling else misfit
    if fixed > target and context.policy.compacts:
        parts = _pinned(_encoded(shown.groups, pieces))
        return _misfit("fixed_over_target", fixed - target, parts, sizes, fixed)
    return None


def _misfit(
    reason: MisfitReason, excess: int, parts: Iterable[_Part], sizes: Account, fixed: int
) -> CannotFit:
    causes = _enough(_causes(parts, sizes, reason), excess)
    remedies = "; ".join(filter(None, (cause.remedy for cause in causes)))
    helps = sum(cause.removable for cause in causes) >= excess
    larger = f"take a window of at least {sizes.total} tokens"
    if reason == "fixed_over_target":
        larger = "take a larger window, or a policy with a larger target_ratio"
    return CannotFit(
        reason=reason,
        total=sizes.total,
        fixed=fixed,
        limit=sizes.limit,
        causes=causes,
        advice=f"free {excess} tokens or more ({remedies}), or {larger}" if helps else larger,
    )


def _enough(causes: Iterable[Cause], excess: int) -> tuple[Cause, ...]:
    """The largest parts, enough that together they exceed the excess."""
    found: list[Cause] = []
    for cause in sorted(causes, key=lambda cause: -cause.tokens):
        if sum(before.tokens for before in found) >= excess:
            break
        found.append(cause)
    return tuple(found)


def _causes(parts: Iterable[_Part], sizes: Account, reason: MisfitReason) -> Iterator[Cause]:
    if sizes.system:
        yield Cause(kind="system prompt", tokens=sizes.system, removable=sizes.system)
    if sizes.tools:
        yield Cause(kind="tools", tokens=sizes.tools, removable=sizes.tools)
    if sizes.prefix > 0 and reason == "over_limit":
        yield Cause(kind="overhead", tokens=round(sizes.prefix))
    by_kind: dict[PartKind, list[_Part]] = {}
    for part in parts:
        by_kind.setdefault(part.kind, []).append(part)
    yield from (_cause(found, sizes.ratio) for found in by_kind.values())


def _cause(parts: Sequence[_Part], ratio: float) -> Cause:
    """The blocks of one kind; only the largest, if it is nearly all of them."""
    largest = max(parts, key=attrgetter("removable", "tokens"))
    if largest.tokens >= ALONE * sum(part.tokens for part in parts):
        parts = [largest]
    return Cause(
        kind=largest.kind,
        tokens=round(ratio * sum(part.tokens for part in parts)),
        blocks=len(parts),
        largest=largest.path,
        removable=int(ratio * sum(part.removable for part in parts)),
    )


# The blocks of a request.


def _encoded(groups: Sequence[Group], pieces: Sequence[Piece]) -> list[_Encoded]:
    return [(as_shown(group), piece) for group, piece in zip(groups, pieces, strict=True)]


def parts_of(groups: Iterable[_Encoded]) -> Iterator[_Part]:
    for group, piece in groups:
        for entry in group.entries:
            if tokens := piece.tokens_of(entry.version):
                yield _part(entry, tokens)


def _part(entry: Entry, tokens: int) -> _Part:
    kind = _kind_of(entry.block)
    if kind == "summary" or entry.dropped:  # cannot be hidden
        return _Part(kind, entry.name, tokens)
    left = STAND_IN_TOKENS.get(kind, OTHER_STAND_IN_TOKENS)
    return _Part(kind, entry.name, tokens, max(tokens - left, 0))


def _pinned(groups: Sequence[_Encoded]) -> Iterator[_Part]:
    """As `parts_of`, for the blocks that no compaction can fold: notes and open calls."""
    yield from (part for part in parts_of(groups) if part.kind == "note")
    yield from _open(groups)


def _open(groups: Sequence[_Encoded]) -> Iterator[_Part]:
    """The open calls; only the last group has any."""
    for group, piece in groups[-1:]:
        for entry, _ in group.unanswered:
            yield _part(entry, piece.tokens_of(entry.version))


def _kind_of(block: Block) -> PartKind:
    for types, kind in _KINDS:
        if isinstance(block, types):
            return kind
    return "block"
