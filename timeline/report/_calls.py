"""The calls of a log: what each request had, what the provider billed or would have, and what was decided before it."""

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
    """One request, and what came of it."""

    at: float
    """Seconds since the epoch."""
    shown: int
    """Version of the view that it showed."""
    tokens: int
    """The whole prompt, calibrated."""
    full: int
    """What sending everything would have been."""
    account: Account
    bust: bool
    """Whether it threw away a prefix that the provider still had, by the cache as it is simulated."""
    read: int
    write: int
    uncached: int
    """By the cache as it is simulated."""
    paid: float
    """In dollars, for the prompt, by the same."""
    full_paid: float
    """The same for sending everything."""
    is_rendered: bool
    """Whether the log has this request; otherwise it is what a response was given to, rendered now."""
    is_exact: bool
    """Whether what was rendered now has the hash that the log has."""
    decisions: tuple[str, ...]
    """What was decided since the call before, a word each."""
    usage: UsageRecorded | None = None
    """What the provider said."""


def word_of(event: Event) -> str:
    """What an event decided, in a word; empty: nothing."""
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
    """What the provider's own numbers come to, in dollars, for the prompt; `ttl`: seconds that what it wrote to
    its cache is kept, the shortest that there is if it is none of the model's."""
    rates = provider_of(model).rates(model, usage.input)
    kept = ttl if ttl in rates.writes else min(rates.writes, default=0)
    written = {kept: usage.cache_write} if kept else {}
    return rates.cost(usage.uncached, usage.cache_read, written) / MILLION


@attrs.define
class Everything:
    """What sending everything costs: what went before is read while the cache is warm, and the rest is written."""

    model: Model
    _last: tuple[float, int] | None = attrs.field(default=None, init=False)

    def send(self, at: float, tokens: int) -> float:
        """Dollars for a prompt of so many tokens that begins with the one before."""
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
    """The calls as a page takes them: a list for each number."""
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
