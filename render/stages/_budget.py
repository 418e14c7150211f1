"""The budget of a request, from what it has to why it does not fit.

The account is the tokens of a request by part. The limits say how many it may have, before and after a compaction;
together they decide when a compaction is due. The account can be written as a table. If a request exceeds its limit,
or no compaction can bring it below its target, `cannot_fit` says which parts are too large and how to make it fit.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Calibration,
    Note,
    Plan,
    RangeSummary,
    SystemMessage,
    ToolCall,
    ToolResult,
    Trigger,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    standing_of,
    text_of,
)
from render.policy._context import Context, Piece
from render.view._view import Entry, Group, Json, Shown, View, as_shown

RESERVE_MAX: Final = 0.2
"""Largest share of the limit that is kept free for artifacts, so that a reserve meant for a large window does not fill
a small one."""
FITTING: Final = 0.95
"""A compaction must bring the request below this share of the trigger, so that the next round does not trigger
another."""
ROOM_MAX: Final = 0.05
"""Largest share of the budget for `trigger_room`."""


@attrs.frozen(kw_only=True)
class Account:
    """The tokens of one request, by part."""

    model: str = ""
    known: bool = True
    """False: the model is not described, so its limit and token counts are guesses."""
    system: int
    tools: int
    summary: int
    """The summary and the carried blocks."""
    standing: int = 0
    """Standing instructions, wherever they are shown; a part of `summary` and `messages`."""
    standing_cut: int = 0
    """Tokens of standing instructions for which there was no room."""
    messages: int
    rehydrated: int = 0
    """Artifacts that came back; they do not cause a compaction."""
    limit: int
    output: int = 0
    """Tokens kept free for the answer, in addition to the limit; 0: the limit was given directly."""
    total: int
    """All parts together, calibrated."""
    estimated: int
    """All parts together, before calibration."""
    ratio: float = 1.0
    """Calibration: real tokens per estimated token; 1.0 if nothing was measured."""
    prefix: float = 0.0
    """Calibration: tokens of every request that belong to no block."""
    samples: int = 0
    error_last: float = 0.0
    """Relative error of the last estimate that was checked."""

    @property
    def available(self) -> int:
        """Tokens that are left below the limit; negative if the request does not fit."""
        return self.limit - self.total

    @property
    def utilisation(self) -> float:
        """The used share of the room that system prompt and tools leave below the limit; above 1.0 the request does not
        fit."""
        fixed = (self.system + self.tools) * self.ratio + self.prefix
        return max(self.total - fixed, 0) / max(self.limit - fixed, 1)

    def to_json(self) -> Json:
        """Every field and derived value, for a log or a dashboard."""
        derived = {"available": self.available, "utilisation": round(self.utilisation, 4)}
        return {**attrs.asdict(self), **derived}


# The limits.

ANSWER_SHARE_MAX: Final = 0.25
"""Largest share of a limit that a refusal has named to keep free for the answer."""


def within_limits(context: Context, view: View) -> Context:
    """The context with a smaller limit, if the provider would refuse a larger prompt; and with all of it to fill, if need be.

    It may have named its limit when it refused one; of this, as much is kept free for the answer as of the model's
    window. And before it has counted a request of this timeline, the estimate may be too small: then a prompt near the
    model's window must fit even if the tokenizer needs as many tokens as it may at most.
    """
    model, calibration = context.model, view.state.calibrations.get(context.model.name)
    limit = context.limit
    if calibration and calibration.limit:
        free = min(context.output_tokens, int(ANSWER_SHARE_MAX * calibration.limit))
        limit = min(limit, calibration.limit - free)
    if context.calibrate and not (calibration and calibration.samples):
        input_max = model.input_tokens_max or model.tokens_window
        room = max(min(model.tokens_window - context.output_tokens, input_max), context.limit)
        safe = int(room * model.token_factor / max(model.token_factor_safe, model.token_factor))
        limit = safe if safe < limit and total_tokens(view, context) > safe else limit
    context = context if limit == context.limit else attrs.evolve(context, limit=limit)
    return widened(context, view)


def widened(context: Context, view: View) -> Context:
    """The context that fills all of its limit, if what no compaction can fold needs more than half of what it would fill:
    system prompt, tools, standing instructions, the prompts of the current turn, the newest round."""
    if context.policy.trigger_tokens is not None or context.capacity == context.limit:
        return context
    sizes, shown = account(view, context), view.shown
    if sizes.total <= target_of(context):
        return context
    pieces = context.encoder.pieces(shown)
    prompts = [
        piece.tokens_of(entry.version)
        for group, piece in _encoded(shown.groups, pieces)[:-1]
        for entry in group.entries
        if entry.block.turn == view.turn and isinstance(entry.block, _PROMPTS)
    ]
    newest = [piece.tokens for piece in pieces[-1:]]
    estimated = sizes.system + sizes.tools + sizes.standing + sum(prompts + newest)
    if sizes.ratio * estimated + sizes.prefix <= context.capacity / 2:
        return context
    return attrs.evolve(context, policy=attrs.evolve(context.policy, trigger_tokens=0))


def budget_of(context: Context) -> int:
    """Tokens that the prompt may have: the limit less the reserves."""
    policy = context.policy
    reserve = min(policy.rehydration_tokens, int(RESERVE_MAX * context.limit))
    return int(context.limit * (1 - policy.safety_ratio)) - reserve


def target_of(context: Context) -> int:
    """Tokens below which a compaction should bring the prompt."""
    return int(context.policy.target_ratio * context.capacity)


def threshold_of(context: Context) -> int:
    """Tokens above which a compaction is due."""
    policy, budget = context.policy, budget_of(context)
    if policy.trigger_tokens is None:
        budget = min(budget, context.capacity)
    room = min(policy.trigger_room, int(ROOM_MAX * budget))
    most = min(int(policy.trigger_ratio * budget), budget - room)
    return min(policy.trigger_tokens or most, most)


def fitting_of(context: Context) -> int:
    """Tokens that the request may have after a compaction."""
    return int(FITTING * threshold_of(context))


# When a compaction is due.


def is_over(view: View, context: Context) -> bool:
    """Whether the request has more tokens than may be without a compaction."""
    return total_tokens(view, context) > threshold_of(context)


def compaction_due(view: View, context: Context) -> Trigger | None:
    """Why a compaction is due now; None: it is not.

    Uses the same counts as the final request, so the probe and the request cannot disagree.
    """
    total = total_tokens(view, context)
    if _breaker_is_open(view, total, context):
        return None
    if is_over(view, context):
        return "proactive"
    cold = context.policy.cold_ratio * min(budget_of(context), context.capacity)
    return "cold" if total > cold and view.state.touched_at and is_cold(view, context) else None


def is_cold(view: View, context: Context) -> bool:
    """Whether the provider's cache can no longer contain this timeline's prefix.

    The time to live is the one recorded with the last request, not that of the current policy. If no
    request is recorded, the age of the newest block decides.
    """
    state, policy = view.state, context.policy
    if state.touched_at:
        return context.now - state.touched_at >= state.ttl - policy.ttl_buffer_seconds
    newest = view.groups[-1].entries[-1].at if view.groups else context.now
    return context.now - newest >= context.ttl_seconds - policy.ttl_buffer_seconds


def _breaker_is_open(view: View, total: int, context: Context) -> bool:
    """Whether to wait, after several failures in a row, until the timeline has grown; never if the prompt would not
    fit."""
    state, policy = view.state, context.policy
    if state.failures < policy.failures_max or total > context.limit:
        return False
    return total < state.failed_tokens + policy.gain_min * context.capacity


# The whole request.


def total_tokens(view: View, context: Context) -> int:
    """Tokens of the whole request to which this view would be rendered, calibrated."""
    return account(view, context).total


def _standing_cut(view: View, context: Context) -> int:
    """Tokens by which the newest compaction shortened standing instructions."""
    if view.compaction is None:
        return 0
    compaction, count = view.compaction, context.counter.count
    return compaction.head.memo(
        ("standing cut", context.counter.name),
        lambda: sum(
            count(text_of(item.block)) - count(item.clipped)
            for item in compaction.event.carried
            if item.clipped and not item.withheld and standing_of(item.block)
        ),
    )


def account(view: View, context: Context, returned: int = 0) -> Account:
    """The account of the request to which this view would be rendered; `returned` is the tokens of the artifacts that
    came back."""
    latest = context.latest_account
    if not latest or latest[0] is not view:
        latest[:] = view, _account(view, context)
    sizes: Account = latest[1]
    if not returned:
        return sizes
    return attrs.evolve(
        sizes,
        rehydrated=returned,
        estimated=sizes.estimated + returned,
        total=sizes.total + round(returned * sizes.ratio),
    )


def _account(view: View, context: Context) -> Account:
    prefix, pieces = context.prefix, context.encoder.pieces(view.shown)
    head = pieces[0].tokens if view.compaction and not view.summarised else 0
    messages = sum([piece.tokens for piece in pieces])
    estimated = prefix.tokens + messages
    calibrations = view.state.calibrations if context.calibrate else {}
    calibration = calibrations.get(context.model.name) or Calibration()
    return Account(
        model=context.model.name,
        known=context.model.known,
        system=prefix.system_tokens,
        tools=prefix.tool_tokens,
        summary=head,
        standing=sum([piece.standing for piece in pieces]),
        standing_cut=_standing_cut(view, context),
        messages=messages - head,
        limit=context.limit,
        output=context.output_tokens,
        total=round(estimated * calibration.ratio + calibration.prefix),
        estimated=estimated,
        ratio=calibration.ratio,
        prefix=calibration.prefix,
        samples=calibration.samples,
        error_last=calibration.error_last,
    )


# The account as a table.


def format_account(account: Account) -> str:
    """The account as lines of text: each part with its tokens, and how much is left."""
    rows = [(name, f"{tokens:,}", note) for name, tokens, note in _rows(account)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{name:<{widths[0]}}  {tokens:>{widths[1]}}  {note}" for name, tokens, note in rows]
    head = f"model {account.model}"
    if not account.known:
        head += ": unknown, so the counts are guesses"
    return "\n".join([head, *map(str.rstrip, lines)])


def _rows(account: Account) -> Iterator[tuple[str, int, str]]:
    reserve = f"besides {account.output:,} for the answer" if account.output else "given directly"
    guess = "; the window is a guess" if account.output and not account.known else ""
    yield "limit", account.limit, reserve + guess
    yield "system", account.system, ""
    yield "tools", account.tools, ""
    yield "summary", account.summary, "with what was carried"
    yield "messages", account.messages, ""
    if account.standing:
        lost = f"; {account.standing_cut:,} more had no room" if account.standing_cut else ""
        yield "of these standing", account.standing, f"instructions{lost}"
    if account.rehydrated:
        yield "rehydrated", account.rehydrated, ""
    yield "estimated", account.estimated, ""
    yield "total", account.total, _calibrated(account)
    left = "" if account.available >= 0 else "it does not fit"
    yield "available", account.available, left or f"{account.utilisation:.0%} of the room is used"


def _calibrated(account: Account) -> str:
    if not account.samples:
        return "not calibrated: nothing to compare with yet"
    return (
        f"calibrated: {account.ratio:.3f} each, {account.prefix:+,.0f}; "
        f"the last estimate was off by {account.error_last:+.1%}"
    )


# Why a request does not fit.


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
_PROMPTS: Final = (UserPrompt, UserFollowup, UserSteer)
_KINDS: Final[dict[type, PartKind]] = {
    **dict.fromkeys(_PROMPTS, "prompt"),
    UserAttachment: "attachment",
    Note: "note",
    Plan: "plan",
    AssistantCompletion: "answer",
    AssistantThinking: "thinking",
    ToolCall: "call",
    ToolResult: "result",
    SystemMessage: "notice",
    RangeSummary: "summary",
}

_Encoded: TypeAlias = tuple[Group, Piece]
"""A group as it is shown, and encoded."""


class _Part(msgspec.Struct, frozen=True):
    """One block as it is shown."""

    kind: PartKind
    path: str
    tokens: int
    removable: int = 0
    """Tokens that hiding the block would free."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
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
    """Why a request is too large for its limit, or too large for any compaction to bring it below its target; None if
    it is not.

    `unwilling` is the reason why nothing made room, if that was a deliberate choice (such as a policy).
    """
    target = target_of(context)
    if sizes.total <= target:
        return None
    pieces = context.encoder.pieces(shown)
    opened = _open(_encoded(shown.groups[-1:], pieces[-1:]))
    pinned = sum([piece.pinned for piece in pieces]) + sum(part.tokens for part in opened)
    fixed = sizes.system + sizes.tools + round(sizes.ratio * pinned)
    if sizes.total > context.limit:
        parts = parts_of(_encoded(shown.groups, pieces))
        misfit = _misfit("over_limit", sizes.total - context.limit, parts, sizes, fixed)
        return attrs.evolve(misfit, advice=unwilling) if unwilling else misfit
    if fixed > target and context.policy.compacts:
        parts = parts_of(_encoded(shown.groups, pieces))
        notes = (part for part in parts if part.kind == "note")
        parts = chain(notes, opened)  # what no compaction can fold
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
    largest = sorted(causes, key=lambda cause: -cause.tokens)
    before = accumulate((cause.tokens for cause in largest), initial=0)
    return tuple(cause for cause, tokens in zip(largest, before, strict=False) if tokens < excess)


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
    yield from (_cause(cause, sizes.ratio) for cause in by_kind.values())


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
    kind = _KINDS.get(type(entry.block), "block")
    if kind == "summary" or entry.dropped:  # cannot be hidden
        return _Part(kind, entry.name, tokens)
    stand_in = STAND_IN_TOKENS.get(kind, OTHER_STAND_IN_TOKENS)
    return _Part(kind, entry.name, tokens, max(tokens - stand_in, 0))


def _open(last: Sequence[_Encoded]) -> list[_Part]:
    """The open calls; only the last group has any."""
    calls = ((entry, piece) for group, piece in last for entry, _ in group.unanswered)
    return [_part(entry, piece.tokens_of(entry.version)) for entry, piece in calls]
