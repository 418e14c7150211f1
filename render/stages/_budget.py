"""What a request may have, and what it has."""

from operator import attrgetter
from typing import Final

import attrs

from blocks import Calibration
from render.policy._context import Context
from render.view._view import View
from render.view._visible import slice_visible

RESERVE_MAX: Final = 0.2
"""Share of the limit that is kept for what comes back, at most: a reserve meant for a large window
must not eat a small one."""


@attrs.frozen(kw_only=True)
class Account:
    """Where the tokens of one request are."""

    system: int
    tools: int
    summary: int
    """The summary and what was carried."""
    messages: int
    rehydrated: int = 0
    """Artifacts that came back; no compaction is due because of them."""
    limit: int
    output: int = 0
    """Kept free for the answer, besides the limit; 0: the limit was given as it is."""
    total: int
    """All of it, calibrated."""
    estimated: int
    """The same before calibration."""
    ratio: float = 1.0
    """Calibration: real tokens per estimated one; 1.0 when nothing was measured."""
    prefix: float = 0.0
    """Calibration: tokens that every request has and no block explains."""
    samples: int = 0
    error_last: float = 0.0
    """Relative error of the last estimate that could be checked."""

    @property
    def available(self) -> int:
        """Tokens that are left below the limit; negative: it does not fit."""
        return self.limit - self.total

    @property
    def utilisation(self) -> float:
        """Of what system and tools leave of the limit, the share that the rest has; above 1.0 it does
        not fit."""
        fixed = (self.system + self.tools) * self.ratio + self.prefix
        return max(self.total - fixed, 0) / max(self.limit - fixed, 1)


def budget_of(context: Context) -> int:
    """Tokens that the prompt is planned to have: the limit less what is reserved."""
    policy = context.policy
    reserve = min(policy.rehydration_tokens, int(RESERVE_MAX * context.limit))
    return int(context.limit * (1 - policy.safety_ratio)) - reserve


def threshold_of(context: Context) -> int:
    """Tokens above which a compaction is due."""
    policy, budget = context.policy, budget_of(context)
    return min(policy.trigger_tokens or int(policy.trigger_ratio * budget), budget)


def fixed_tokens(context: Context) -> int:
    """System prompt and tools, before calibration."""
    return system_tokens(context) + tools_tokens(context)


def system_tokens(context: Context) -> int:
    """The system prompt."""
    count, fixed = context.counter.count, context.fixed
    texts = (str(block.get("text", "")) for block in fixed.system)
    return fixed.memo(("system", context.counter.name), lambda: sum(map(count, texts)))


def tools_tokens(context: Context) -> int:
    """The tool definitions, and what the provider adds to explain them."""
    counter, fixed, provider = context.counter, context.fixed, context.provider
    tokens = fixed.memo(
        ("tools", provider.name, counter.name),
        lambda: sum(provider.tool_tokens(tool, counter) for tool in fixed.tools),
    )
    return tokens + (context.overhead_tokens if context.tools else 0)


def total_tokens(view: View, context: Context) -> int:
    """The whole request that this view would be rendered to, calibrated."""
    return account(view, context).total


def corrected(estimated: int, view: View, context: Context) -> int:
    """What so many estimated tokens come to, as far as the provider has told."""
    known = _calibration(view, context)
    return round(estimated * known.ratio + known.prefix) if known else estimated


def _calibration(view: View, context: Context) -> Calibration | None:
    return view.state.calibrations.get(context.model.name) if context.calibrate else None


def with_artifacts(sizes: Account, tokens: int) -> Account:
    """The account of a request into which artifacts of so many tokens came back."""
    if not tokens:
        return sizes
    return attrs.evolve(
        sizes,
        rehydrated=tokens,
        estimated=sizes.estimated + tokens,
        total=sizes.total + round(tokens * sizes.ratio),
    )


def account(view: View, context: Context) -> Account:
    """The account of the request that this view would be rendered to."""
    latest = context.latest_account
    if not latest or latest[0] is not view:
        latest[:] = view, _account(view, context)
    found: Account = latest[1]
    return found


def _account(view: View, context: Context) -> Account:
    pieces = context.encoder.pieces(slice_visible(view))
    head = pieces[0].tokens if view.compaction and not view.summarised else 0
    messages = sum(map(attrgetter("tokens"), pieces))
    system, tools = system_tokens(context), tools_tokens(context)
    estimated = system + tools + messages
    known = _calibration(view, context)
    return Account(
        system=system,
        tools=tools,
        summary=head,
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
