"""The calls of a log: the tokens and cost of each request, billed or simulated, and the decisions before it."""

from collections.abc import Sequence
from typing import Final

import attrs

from blocks import (
    BlocksHidden,
    BlocksRestored,
    CompactionSkipped,
    Event,
    RangeCompacted,
    RangeExpanded,
    SummaryPrepared,
    SummaryReplaced,
    UsageRecorded,
)
from render import Account, Model, provider_of
from timeline.report._lives import STATES

MILLION: Final = 1_000_000


@attrs.frozen(kw_only=True)
class Call:
    """One request with its tokens, cost and usage."""

    at: float
    """The time of the request, in seconds since the epoch."""
    shown: int
    """The version of the view that the request shows."""
    tokens: int
    """The calibrated tokens of the whole prompt."""
    full: int
    """The tokens of sending everything."""
    account: Account
    bust: bool
    """Whether it lost a prefix that was still in the simulated cache."""
    read: int
    write: int
    uncached: int
    """`read`, `write` and `uncached` are tokens by the simulated cache."""
    paid: float
    """The cost of the prompt in dollars, by the simulated cache."""
    full_paid: float
    """The cost of sending everything, in dollars."""
    is_rendered: bool
    """Whether the log recorded this request; otherwise it is rendered now for the response that followed."""
    is_exact: bool
    """Whether the request, rendered now, has the hash in the log."""
    decisions: tuple[str, ...]
    """A word for each decision since the previous call."""
    usage: UsageRecorded | None = None
    """The usage that the provider reported; None if there is no report."""


def word_of(event: Event) -> str:
    """A word for the decision that an event records; empty if it records none."""
    match event:
        case BlocksHidden():
            return STATES[event.reason]
        case BlocksRestored():
            return "restored"
        case RangeCompacted():
            return "compacted"
        case RangeExpanded():
            return "expanded"
        case SummaryReplaced():
            return "rewritten"
        case SummaryPrepared():
            return "prepared"
        case CompactionSkipped():
            return "skipped"
        case _:
            return ""


def billed(usage: UsageRecorded, model: Model, ttl: int = 0) -> float:
    """The cost of the prompt in dollars, by the usage that the provider reported.

    `ttl`: the seconds that written tokens are cached; if the model has no such time, its shortest is used.
    """
    rates = provider_of(model).rates(model, usage.input)
    kept = ttl if ttl in rates.writes else min(rates.writes, default=0)
    written = {kept: usage.cache_write} if kept else {}
    return rates.cost(usage.uncached, usage.cache_read, written) / MILLION


@attrs.define
class Everything:
    """Prices sending everything: the previous prompt is read while the cache is warm, the rest is written."""

    model: Model
    _last: tuple[float, int] | None = attrs.field(default=None, init=False)

    def send(self, at: float, tokens: int) -> float:
        """The dollars for a prompt of that many tokens that begins with the previous prompt."""
        provider = provider_of(self.model)
        limits = provider.limits(self.model)
        rates = provider.rates(self.model, tokens)
        last, self._last = self._last, (at, tokens)
        ttl = min(rates.writes, default=0)
        if tokens < limits.cache_tokens_min or not ttl:
            return rates.cost(tokens, 0, {}) / MILLION
        read = min(last[1], tokens) if last and at - last[0] < ttl else 0
        return rates.cost(0, read, {ttl: tokens - read}) / MILLION


def columns(calls: Sequence[Call]) -> dict[str, list[object]]:
    """The calls in the page's format: a list for each field."""
    return {
        "at": [call.at for call in calls],
        "shown": [call.shown for call in calls],
        "tokens": [call.tokens for call in calls],
        "full": [call.full for call in calls],
        "system": [call.account.system for call in calls],
        "tools": [call.account.tools for call in calls],
        "summary": [call.account.summary for call in calls],
        "bust": [int(call.bust) for call in calls],
        "read": [call.read for call in calls],
        "write": [call.write for call in calls],
        "uncached": [call.uncached for call in calls],
        "paid": [round(call.paid, 7) for call in calls],
        "fullPaid": [round(call.full_paid, 7) for call in calls],
        "rendered": [int(call.is_rendered) for call in calls],
        "exact": [int(call.is_exact) for call in calls],
        "decisions": [call.decisions for call in calls],
        "usage": [_usage(call.usage) for call in calls],
    }


def _usage(usage: UsageRecorded | None) -> list[int] | None:
    if usage is None:
        return None
    return [usage.uncached, usage.cache_read, usage.cache_write, usage.output]
