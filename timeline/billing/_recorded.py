"""The bill that a recorded session left in its log, and what other requests would have cost against it.

Each call is priced at its own model, by what the provider reported: ordinary input, cache reads, cache writes by the
time for which they are kept, and the answer with its reasoning.

A comparison counts alike on both sides.  Answers, and calls that are no part of the conversation, cost the same.  What
the log leaves out of the prompts is estimated from the reported tokens: the system prompt and the tools from the first
call, and what belongs to the messages (hidden thinking, reminders, the error of our own counts) from how much the
prompts grew for each token that ours grew.  What the provider's cache had kept at a call, and for what price, is taken
from the recording: it has the same share of the other request.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from blocks import UsageRecorded
from render import Model
from timeline.billing._prices import price, usage_price, usage_rates, usage_written, with_read
from timeline.billing._prompt_cache import CacheStep

Priced: TypeAlias = Callable[[str], Model | None]
"""The model that has a name and whose prices apply; None: no price is known."""
_MILLION: Final = 1_000_000
_TIMES: Final = {300: "5m", 1_800: "30m", 3_600: "1h", 43_200: "12h"}


@attrs.frozen(kw_only=True)
class Part:
    """Tokens of one kind, and their price in dollars."""

    tokens: int = 0
    dollars: float = 0.0


class RecordedCall(NamedTuple):
    """A call of the recording, and the request that would have been sent for it."""

    at: float
    usage: UsageRecorded | None
    full: int
    """Our count of the whole history, which the recording agent sent as long as it did not compact."""
    step: CacheStep


@attrs.frozen(kw_only=True)
class RecordedBill:
    """What a session has cost, by the usage in its log."""

    dollars: float = 0.0
    calls: int = 0
    """The calls in it."""
    aside: int = 0
    """Those of them that are no part of the conversation: of sub-agents, or broken off."""
    parts: Mapping[str, Part] = attrs.field(factory=dict[str, Part])
    """`input`, `cache_read`, `cache_write_5m`, `cache_write_1h`, `output`: those that it has."""
    models: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Dollars by the model's name in the log."""
    without_usage: int = 0
    """The calls whose usage the log does not have; they are not in it."""
    unpriced: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """Calls by model, for models without a known price; they are not in it either."""
    guessed: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """For models that are not in the table, the model of the same vendor whose prices were taken."""
    tiers: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """Calls by service tier, for tiers without a known price; the list price was taken."""
    unlogged: int = 0
    """Tokens of system prompt and tools in each request that the log does not have: an estimate."""
    growth: float = 1.0
    """By how many tokens the prompts grew for each token that they grew by our count: an estimate."""
    foldline: float | None = None
    """What the same calls would have cost with foldline; None if they were not compared."""

    @property
    def saved(self) -> float:
        """The dollars that foldline would have saved; below 0: it would have cost more."""
        return 0.0 if self.foldline is None else self.dollars - self.foldline

    def to_json(self) -> dict[str, Any]:
        """The bill in the format of `--json`."""
        data = attrs.asdict(self) | {"saved": self.saved, "headline": self.headline()}
        return {name: _rounded(value) for name, value in data.items()}

    def headline(self) -> str:
        """The bill and the comparison in one line; without a bill, why there is none."""
        if not self.calls:
            return f"no bill: {'; '.join(self.left_out()) or 'the log has no model calls'}"
        about = "about " if self.guessed or self.tiers else ""
        paid = f"bill {about}{money(self.dollars)} recorded"
        if self.foldline is None:
            return paid
        amount, share = money(abs(self.saved)), abs(self.saved) / (self.dollars or 1.0)
        if self.saved < 0:
            return f"{paid}; with foldline it would have cost {amount} more ({share:.0%})"
        return f"{paid}; with foldline {money(self.foldline)}: saved {amount} ({share:.0%})"

    def lines(self) -> tuple[str, ...]:
        """What the bill consists of, how it was compared, and what is not in it."""
        parts = (
            f"{name.replace('_', ' ')} {money(part.dollars)} ({part.tokens:,})"
            for name, part in self.parts.items()
        )
        models = ", ".join(f"{name} {money(paid)}" for name, paid in self.models.items())
        calls = (
            f"{self.calls:,} calls, {self.aside:,} of them aside"
            if self.aside
            else f"{self.calls:,} calls"
        )
        head = [f"{calls}, tokens in brackets: {', '.join(parts)}"] if self.calls else []
        if len(self.models) > 1:
            head.append(f"by model: {models}")
        if self.foldline is not None:
            head.append(
                f"on both sides, estimated from the recorded usage: {self.unlogged:,} tokens of system prompt and tools "
                f"that the log lacks, and {self.growth:.2f} tokens for each that the log has"
            )
        left = [f"not in the bill: {'; '.join(self.left_out())}"] if self.left_out() else []
        return (*head, *(left if self.calls else ()), *self._guesses())

    def left_out(self) -> tuple[str, ...]:
        """The calls that are not in the bill."""
        unpriced = (f"{n:,} calls at unknown prices ({name})" for name, n in self.unpriced.items())
        silent = self.without_usage
        return (*([f"{silent:,} calls whose usage the log lacks"] if silent else []), *unpriced)

    def _guesses(self) -> Iterable[str]:
        for name, like in self.guessed.items():
            yield f"{name!r} is not in the table; the prices of {like} are a guess"
        for tier, calls in self.tiers.items():
            yield f"{calls:,} calls at the list price: the price of service tier {tier!r} is not known"


def money(dollars: float) -> str:
    """An amount in dollars."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.3f}"


def recorded_bill(
    calls: Iterable[UsageRecorded | None], aside: Iterable[UsageRecorded], priced: Priced
) -> RecordedBill:
    """The bill of the calls of a conversation (None: usage not reported), and of others."""
    parts, models = dict[str, Part](), dict[str, float]()
    unpriced, tiers = Counter[str](), Counter[str]()
    guessed, silent, counts = dict[str, str](), 0, [0, 0]
    for is_aside, usages in enumerate((calls, aside)):
        for usage in usages:
            model = priced(usage.model) if usage else None
            if usage is None or not (usage.input or usage.output):
                silent += 1
            elif model is None:
                unpriced[usage.model or "unknown"] += 1
            else:
                counts[is_aside] += 1
                paid = usage_price(usage, model)
                models[usage.model] = models.get(usage.model, 0.0) + paid
                for name, part in _parts(usage, model):
                    had = parts.get(name, Part())
                    tokens, dollars = had.tokens + part.tokens, had.dollars + part.dollars
                    parts[name] = Part(tokens=tokens, dollars=dollars)
                guessed |= {} if model.known else {usage.model: model.name}
                tiers.update([usage.tier] if usage.tier else [])
    return RecordedBill(
        dollars=sum(models.values()),
        calls=sum(counts),
        aside=counts[1],
        parts={name: parts[name] for name in sorted(parts, key=_place)},
        models=models,
        without_usage=silent,
        unpriced=unpriced,
        guessed=guessed,
        tiers=tiers,
    )


def _parts(usage: UsageRecorded, model: Model) -> Iterable[tuple[str, Part]]:
    rates = usage_rates(usage, model)
    found = [("input", usage.uncached, rates.input), ("cache_read", usage.cache_read, rates.read)]
    for seconds, tokens in usage_written(usage, model).items():
        name = _TIMES.get(seconds, f"{seconds}s")
        found.append((f"cache_write_{name}", tokens, rates.writes[seconds]))
    found.append(("output", usage.output, rates.output))
    for name, tokens, rate in found:
        if tokens:
            yield name, Part(tokens=tokens, dollars=tokens * rate / _MILLION)


def _place(name: str) -> tuple[int, str]:
    order = ("input", "cache_read", "output")
    return (order.index(name) if name in order else 1, name)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value


# The comparison.


def compared_bill(
    bill: RecordedBill, calls: Sequence[RecordedCall], priced: Priced, summaries: float
) -> RecordedBill:
    """The bill, and what its calls would have cost with other requests; `summaries`: dollars paid for their pages."""
    known = [
        (call, call.usage, model)
        for call in calls
        if call.usage and call.usage.input and (model := priced(call.usage.model))
    ]
    if not known:
        return bill
    unlogged, growth = unlogged_in([(usage, call.full) for call, usage, _ in known])
    first = known[0][0]
    is_long = 2 * sum(u.cache_write_long for _, u, _ in known) > sum(
        u.cache_write for _, u, _ in known
    )
    before = dict[str, tuple[float, UsageRecorded]]()
    more = summaries
    for call, usage, model in known:
        if (
            call is not first or call.step.total != call.full
        ):  # another request than the recorded one
            times = usage_rates(usage, model).writes
            seconds = max(times, default=0) if is_long else min(times, default=0)
            beginning = min(unlogged, usage.input)
            lost = _lost(call.at, usage, before.get(usage.model), (beginning, seconds))
            step = _as_sent(call.step, growth, lost, seconds)
            step = _with_beginning(step, usage, model, beginning)
            more += price(step, model, usage.output) - usage_price(usage, model)
        before[usage.model] = call.at, usage
    return attrs.evolve(bill, foldline=bill.dollars + more, unlogged=unlogged, growth=growth)


def unlogged_in(calls: Sequence[tuple[UsageRecorded, int]]) -> tuple[int, float]:
    """The tokens of system prompt and tools that a log lacks; and by how many the prompts grew for each by our count,
    between calls where they did: what an agent took out of its prompts by itself does not count. `calls`: what was
    reported, and our count of the whole history."""
    theirs = ours = 0
    for (before, full_before), (after, full) in pairwise(calls):
        if after.input > before.input and full > full_before:
            theirs += after.input - before.input
            ours += full - full_before
    growth = theirs / ours if ours else 1.0
    return max(calls[0][0].input - round(growth * calls[0][1]), 0), growth


def _lost(
    at: float,
    usage: UsageRecorded,
    before: tuple[float, UsageRecorded] | None,
    kept: tuple[int, int],
) -> float:
    """The share of the previous prompt that the provider's cache had lost at this call. Where the agent cut its prompt,
    its usage does not tell; then the cache has it for its time. `kept`: the tokens of the beginning, and that time."""
    beginning, seconds = kept
    if before and usage.input < before[1].input:
        return float(at - before[0] >= seconds)
    sent = (before[1] if before else usage).input - beginning
    return 1 - min(max(usage.cache_read - beginning, 0) / sent, 1.0) if sent > 0 else 0.0


def _as_sent(step: CacheStep, growth: float, lost: float, seconds: int) -> CacheStep:
    """A step in the provider's tokens, in a cache that has lost a share, written for so many seconds."""
    read, written = round(growth * step.read), {seconds: round(growth * step.write)}
    grown = CacheStep(read=read, written=written, uncached=round(growth * step.uncached))
    return with_read(grown, round(read * (1 - lost)))


def _with_beginning(step: CacheStep, usage: UsageRecorded, model: Model, tokens: int) -> CacheStep:
    """A step after the beginning that the log does not have. Any request for the call has it, and is billed for it as
    the recorded one was."""
    read = min(tokens, usage.cache_read)
    new = min(tokens - read, usage.cache_write)
    written = Counter(step.written)
    if new:
        kept = usage_written(usage, model)
        written[max(kept, key=lambda seconds: kept[seconds])] += new
    uncached = step.uncached + tokens - read - new
    return attrs.evolve(step, read=step.read + read, written=written, uncached=uncached)
