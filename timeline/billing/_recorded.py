"""The bill that a recorded session left in its log, and what other requests would have cost against it.

Each call is priced at its own model, by what the provider reported: ordinary input, cache reads, cache writes by the
time for which they are kept, and the answer with its reasoning.

A comparison counts alike on both sides: answers, calls outside the conversation, and what the log leaves out.  This is
estimated from the reported tokens: system prompt and tools from the first call, and what belongs to the messages
(hidden thinking, reminders, the error of our own counts) from how much the prompts grew for each token that ours grew.
What the provider's cache had kept at a call, and for how long, is taken from the recording.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import attrs

from blocks import UsageRecorded
from render import Model, provider_of
from timeline._models import priced_model
from timeline.billing._prices import price, usage_price, usage_written, with_read
from timeline.billing._prompt_cache import CacheStep

_TIMES: Final = {300: "5m", 1_800: "30m", 3_600: "1h", 43_200: "12h"}


class RecordedCall(NamedTuple):
    """A call of the recording, and the request that would have been sent for it."""

    at: float
    usage: UsageRecorded | None
    full: int
    """Our count of the whole history, which the recording agent sent as long as it did not compact."""
    step: CacheStep
    """That request in a cache that loses nothing."""


@attrs.frozen(kw_only=True)
class RecordedBill:
    """What a session has cost, by the usage in its log; in dollars."""

    dollars: float = 0.0
    calls: int = 0
    aside: int = 0
    """Those calls that are no part of the conversation: of sub-agents, or broken off."""
    tokens: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """By kind: `input`, `cache_read`, `cache_write_5m`, `cache_write_1h`, `output`."""
    parts: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Dollars by kind."""
    models: Mapping[str, float] = attrs.field(factory=dict[str, float])
    """Dollars by the model's name in the log."""
    without_usage: int = 0
    unpriced: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """By model, the calls at unknown prices. They are not in the bill, nor are those without usage."""
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
    def found(self) -> int:
        """All calls, whether they are in the bill or not."""
        return self.calls + self.without_usage + sum(self.unpriced.values())

    @property
    def saved(self) -> float:
        """What foldline would have saved; below 0: it would have cost more."""
        return 0.0 if self.foldline is None else self.dollars - self.foldline

    def to_json(self) -> dict[str, Any]:
        """The bill in the format of `--json`."""
        data = attrs.asdict(self, value_serializer=_rounded)
        return {"headline": self.headline(), **data, "saved": round(self.saved, 6)}

    @property
    def is_guess(self) -> bool:
        """Whether prices had to be guessed."""
        return bool(self.guessed or self.tiers)

    def amount(self) -> str:
        """The bill's dollars; with `about` if prices were guessed."""
        return f"{'about ' if self.is_guess else ''}{money(self.dollars)}"

    def headline(self) -> str:
        """The bill and the comparison in one line; without a bill, why there is none."""
        if not self.calls:
            return f"no bill: {self._left_out() or 'the log has no usage'}"
        paid = f"bill {self.amount()} recorded"
        if self.foldline is None:
            return paid
        amount, share = money(abs(self.saved)), abs(self.saved) / (self.dollars or 1.0)
        if self.saved < 0:
            return f"{paid}; with foldline it would have cost {amount} more ({share:.0%})"
        return f"{paid}; with foldline {money(self.foldline)}: saved {amount} ({share:.0%})"

    def lines(self) -> Iterator[str]:
        """What the bill consists of, how it was compared, and what is not in it."""
        if self.calls:
            aside = f", {self.aside:,} of them outside the conversation" if self.aside else ""
            paid = ((n.replace("_", " "), money(self.parts[n]), self.tokens[n]) for n in self.parts)
            kinds = (f"{name} {dollars} ({tokens:,})" for name, dollars, tokens in paid)
            yield f"{self.calls:,} calls{aside}; dollars (tokens): {', '.join(kinds)}"
            if self._left_out():
                yield f"not in the bill: {self._left_out()}"
        if len(self.models) > 1:
            yield f"by model: {', '.join(f'{name} {money(paid)}' for name, paid in self.models.items())}"
        if self.foldline is not None:
            yield (
                f"on both sides, estimated from the recorded usage: {self.unlogged:,} tokens of system prompt and tools "
                f"that the log lacks, and {self.growth:.2f} tokens for each that the log has"
            )
        for name, like in self.guessed.items():
            yield f"{name!r} is not in the table; the prices of {like} are a guess"
        for tier, calls in self.tiers.items():
            yield f"{calls:,} calls at the list price: the price of service tier {tier!r} is not known"

    def _left_out(self) -> str:
        silent, left = self.without_usage, self.unpriced.items()
        unpriced = [f"{n:,} calls at unknown prices ({name})" for name, n in left]
        return "; ".join([f"{silent:,} calls whose usage the log lacks"] * bool(silent) + unpriced)


def _rounded(_owner: object, _field: object, value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def money(dollars: float) -> str:
    """An amount in dollars."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.3f}"


def recorded_bill(
    calls: Sequence[UsageRecorded | None], aside: Sequence[UsageRecorded]
) -> RecordedBill:
    """The bill of the calls of a conversation (None: usage not reported), and of others.

    A call that went through a gateway costs what its bill says: that knows more than the log, such as the time for
    which the cache is kept.
    """
    tokens, parts, models = (
        Counter[str](),
        defaultdict[str, float](float),
        defaultdict[str, float](float),
    )
    unpriced, tiers, guessed = Counter[str](), Counter[str](), dict[str, str]()
    silent, known = 0, list[int]()
    for number, usage in enumerate((*calls, *aside)):
        if usage is None or not usage.input + usage.output:
            silent += 1
            continue
        if (model := priced_model(usage.model)) is None:
            unpriced[usage.model or "unknown"] += 1
            continue
        known.append(number)
        listed = usage_price(usage, model)
        paid = usage.bill.paid if usage.bill and usage.bill.paid is not None else listed
        models[usage.model] += paid
        for name, count, dollars in _kinds(usage, model):
            tokens[name] += count
            parts[name] += dollars * paid / (listed or 1.0)
        guessed |= {} if model.known else {usage.model: model.name}
        tiers += Counter([usage.tier] if usage.tier else [])
    return RecordedBill(
        dollars=sum(models.values()),
        calls=len(known),
        aside=sum(number >= len(calls) for number in known),
        tokens=tokens,
        parts={n: parts[n] for n in sorted(parts, key=lambda n: (n == "output", n != "input", n))},
        models=models,
        without_usage=silent,
        unpriced=unpriced,
        guessed=guessed,
        tiers=tiers,
    )


def _kinds(usage: UsageRecorded, model: Model) -> Iterable[tuple[str, int, float]]:
    """The tokens and dollars of each kind."""
    rates, written = provider_of(model).rates(model, usage.input), usage_written(usage, model)
    yield "input", usage.uncached, usage.uncached * rates.input / 1e6
    yield "cache_read", usage.cache_read, usage.cache_read * rates.read / 1e6
    for seconds, tokens in written.items():
        name = f"cache_write_{_TIMES.get(seconds, f'{seconds}s')}"
        yield name, tokens, tokens * rates.writes[seconds] / 1e6
    yield "output", usage.output, usage.output * rates.output / 1e6


def timeline_bill(usage: Sequence[UsageRecorded]) -> RecordedBill:
    """The bill of a timeline, by the usage in its log."""
    return recorded_bill([u for u in usage if not u.aside], [u for u in usage if u.aside])


# The comparison.


def compared_bill(
    bill: RecordedBill, calls: Sequence[RecordedCall], summaries: float
) -> RecordedBill:
    """The bill, and what its calls would have cost with other requests; `summaries`: dollars paid for their pages."""
    known = [
        (call, call.usage, model)
        for call in calls
        if call.usage and call.usage.input and (model := priced_model(call.usage.model))
    ]
    if not known:
        return bill
    unlogged, growth = unlogged_in([(usage, call.full) for call, usage, _ in known])
    is_long = sum(2 * usage.cache_write_long - usage.cache_write for _, usage, _ in known) > 0
    before, more = dict[str, tuple[float, UsageRecorded]](), summaries
    for number, (call, usage, model) in enumerate(known):
        if number or call.step.total != call.full:  # not the same request as the recorded one
            times = provider_of(model).rates(model, usage.input).writes
            seconds = (max if is_long else min)(times, default=0)
            last = before.get(usage.model, (call.at, usage))
            begin = _beginning(usage, model, unlogged)
            lost = _lost(usage, last[1], begin.total, is_cold=call.at - last[0] >= seconds)
            step = _as_sent(call.step, growth, lost, seconds)
            step = CacheStep(
                read=begin.read + step.read,
                written=Counter(begin.written) + Counter(step.written),
                uncached=begin.uncached + step.uncached,
            )
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


def _lost(usage: UsageRecorded, before: UsageRecorded, begin: int, *, is_cold: bool) -> float:
    """The share of the previous prompt, after its beginning, that the provider's cache had lost at this call. Where the
    agent cut its prompt, usage does not tell; then all of it is lost if the cache is cold."""
    if usage.input < before.input:
        return float(is_cold)
    sent = before.input - begin
    return 1 - min(max(usage.cache_read - begin, 0) / sent, 1.0) if sent > 0 else 0.0


def _as_sent(step: CacheStep, growth: float, lost: float, seconds: int) -> CacheStep:
    """A step in the provider's tokens, in a cache that has lost a share, written for so many seconds."""
    read, new = round(growth * step.read), round(growth * step.write)
    written = {seconds: new} if new else dict[int, int]()
    grown = CacheStep(read=read, written=written, uncached=round(growth * step.uncached))
    return with_read(grown, round(read * (1 - lost)))


def _beginning(usage: UsageRecorded, model: Model, unlogged: int) -> CacheStep:
    """What the log lacks. Any request for the call begins with it, and is billed for it as the recorded one was."""
    tokens = min(unlogged, usage.input)
    read = min(tokens, usage.cache_read)
    new, kept = min(tokens - read, usage.cache_write), usage_written(usage, model)
    written = {max(kept, key=lambda seconds: kept[seconds]): new} if new else dict[int, int]()
    return CacheStep(read=read, written=written, uncached=tokens - read - new)
