"""The budget of a request, its size, and when a compaction is due."""

from hashlib import sha256
from typing import Final

import attrs
import msgspec

from blocks import Calibration, Trigger, standing_of, text_of
from render.policy._context import Context
from render.view._provider_blocks import Json
from render.view._view import View, slice_visible

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
    if policy.trigger_tokens:
        return min(policy.trigger_tokens, budget)
    room = min(policy.trigger_room, int(ROOM_MAX * budget))
    return min(int(policy.trigger_ratio * budget), budget - room)


def fitting_of(context: Context) -> int:
    """Tokens that the request may have after a compaction."""
    return int(FITTING * threshold_of(context))


def compaction_due(view: View, context: Context) -> Trigger | None:
    """Why a compaction is due now; None: it is not.

    Uses the same counts as the final request, so the probe and the request cannot disagree.
    """
    total = total_tokens(view, context)
    if total > threshold_of(context):
        return None if _breaker_is_open(view, total, context) else "proactive"
    cold = context.policy.cold_ratio * min(budget_of(context), context.capacity)
    if total > cold and view.state.touched_at and is_cold(view, context):
        return None if _breaker_is_open(view, total, context) else "cold"
    return None


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


# System prompt and tools.


@attrs.frozen(kw_only=True)
class Prefix:
    """System and tools as they are sent."""

    system: tuple[Json, ...]
    tools: tuple[Json, ...]
    digest: str
    """SHA-256 of system and tools, as hexadecimal text."""
    tokens: int
    """Tokens before calibration."""


def prefix_of(context: Context) -> Prefix:
    """System prompt and tools with their cache mark; without a mark if the provider would not cache them."""
    tokens = fixed_tokens(context)
    enough = tokens >= context.limits.cache_tokens_min and context.limits.marks_max
    ttl = context.policy.system_ttl if enough else None
    key = ("marked", context.provider.name, ttl, tokens)
    return context.fixed.memo(key, lambda: _marked(context, ttl, tokens))


def fixed_tokens(context: Context) -> int:
    """System prompt and tools, before calibration."""
    return sum(_fixed_sizes(context))


def _fixed_sizes(context: Context) -> tuple[int, int]:
    """Tokens of the system prompt; tokens of the tools, with what the provider adds to explain them."""
    fixed, names = context.fixed, (context.provider.name, context.counter.name)
    system, tools = fixed.memo(("tokens", *names), lambda: _counted(context))
    return system, tools + (context.overhead_tokens if context.tools else 0)


def _counted(context: Context) -> tuple[int, int]:
    counter, fixed, provider = context.counter, context.fixed, context.provider
    system = sum(counter.count(str(block.get("text", ""))) for block in fixed.system)
    return system, sum(provider.tool_tokens(tool, counter) for tool in fixed.tools)


def _marked(context: Context, ttl: str | None, tokens: int) -> Prefix:
    system, tools = context.provider.prefix(context.fixed.system, context.fixed.tools, ttl)
    digest = sha256(msgspec.json.encode([system, tools])).hexdigest()
    return Prefix(system=tuple(system), tools=tuple(tools), digest=digest, tokens=tokens)


# The whole request.


def total_tokens(view: View, context: Context) -> int:
    """Tokens of the whole request to which this view would be rendered, calibrated."""
    return account(view, context).total


def corrected(estimated: int, view: View, context: Context) -> int:
    """An estimated number of tokens, corrected by the provider's reports."""
    known = _calibration(view, context)
    return round(estimated * known.ratio + known.prefix) if known else estimated


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


def _calibration(view: View, context: Context) -> Calibration | None:
    return view.state.calibrations.get(context.model.name) if context.calibrate else None


def account(view: View, context: Context, returned: int = 0) -> Account:
    """The account of the request to which this view would be rendered; `returned` is the tokens of the artifacts that
    came back."""
    latest = context.latest_account
    if not latest or latest[0] is not view:
        latest[:] = view, _account(view, context)
    found: Account = latest[1]
    if not returned:
        return found
    return attrs.evolve(
        found,
        rehydrated=returned,
        estimated=found.estimated + returned,
        total=found.total + round(returned * found.ratio),
    )


def _account(view: View, context: Context) -> Account:
    pieces = context.encoder.pieces(slice_visible(view))
    head = pieces[0].tokens if view.compaction and not view.summarised else 0
    messages = sum([piece.tokens for piece in pieces])
    system, tools = _fixed_sizes(context)
    estimated = system + tools + messages
    known = _calibration(view, context)
    return Account(
        model=context.model.name,
        known=context.model.known,
        system=system,
        tools=tools,
        summary=head,
        standing=sum([piece.standing for piece in pieces]),
        standing_cut=_standing_cut(view, context),
        messages=messages - head,
        limit=context.limit,
        output=context.output_tokens,
        total=corrected(estimated, view, context),
        estimated=estimated,
        ratio=known.ratio if known else 1.0,
        prefix=known.prefix if known else 0.0,
        samples=known.samples if known else 0,
        error_last=known.error_last if known else 0.0,
    )
