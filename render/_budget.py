"""What a request may have, and what it has."""

import attrs

from render._context import Context
from render._slice import slice_visible
from render._view import View
from render.anthropic import Encoder, tool_tokens


@attrs.frozen(kw_only=True)
class Account:
    """Where the tokens of one request are."""

    system: int
    tools: int
    summary: int
    """The summary and what was carried."""
    messages: int
    limit: int
    total: int
    """All of it, calibrated."""
    estimated: int
    """The same before calibration."""
    ratio: float = 1.0
    """Calibration: real tokens per estimated one; 1.0 when nothing was measured."""
    samples: int = 0
    error_last: float = 0.0
    """Relative error of the last estimate that could be checked."""


def budget_of(context: Context) -> int:
    """Tokens that the prompt is planned to have: the limit less what is reserved."""
    policy = context.policy
    return int(context.limit * (1 - policy.safety_ratio)) - policy.rehydration_tokens


def fixed_tokens(context: Context) -> int:
    """System prompt and tools, before calibration."""
    return system_tokens(context) + tools_tokens(context)


def system_tokens(context: Context) -> int:
    """The system prompt."""
    return sum(context.counter.count(str(block.get("text", ""))) for block in context.system)


def tools_tokens(context: Context) -> int:
    """The tool definitions, and what the provider adds to explain them."""
    tokens = sum(tool_tokens(tool, context.counter) for tool in context.tools)
    return tokens + (context.overhead_tokens if context.tools else 0)


def total_tokens(view: View, context: Context) -> int:
    """The whole request that this view would be rendered to, calibrated."""
    return account(view, context).total


def account(view: View, context: Context) -> Account:
    """The account of the request that this view would be rendered to."""
    encoder = Encoder(counter=context.counter, keep_thinking=context.keep_thinking)
    sizes = [encoder.shown(group).tokens for group in slice_visible(view).groups]
    head = sizes[0] if view.compaction else 0
    system, tools = system_tokens(context), tools_tokens(context)
    estimated = system + tools + sum(sizes)
    known = view.state.calibrations.get(context.model.name) if context.calibrate else None
    ratio = known.ratio if known else 1.0
    return Account(
        system=system,
        tools=tools,
        summary=head,
        messages=sum(sizes) - head,
        limit=context.limit,
        total=round(estimated * ratio + known.prefix) if known else estimated,
        estimated=estimated,
        ratio=ratio,
        samples=known.samples if known else 0,
        error_last=known.error_last if known else 0.0,
    )
