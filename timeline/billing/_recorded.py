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
from timeline.billing._prices import ORDINARY, price, usage_price, usage_written
from timeline.billing._prompt_cache import CacheStep

_TIMES: Final = {300: "5m", 1_800: "30m", 3_600: "1h", 43_200: "12h"}
CUT: Final = 0.1
"""An agent whose prompt is smaller than its last one by more than this share has cut its history. Smaller parts go without
that: the API takes out the reasoning of finished turns, and reminders change."""


class RecordedCall(NamedTuple):
    """A call of the recording, and the request that would have been sent for it."""

    at: float
    usage: UsageRecorded
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
    def all_calls(self) -> int:
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
        less, more = sorted((self.dollars, self.foldline))
        amount, share = money(more, less), abs(self.saved) / (self.dollars or 1.0)
        if amount == money(0.0):
            return f"{paid}; with foldline the same"
        if self.saved < 0:
            return f"{paid}; with foldline it would have cost {amount} more ({share:.0%})"
        return f"{paid}; with foldline {money(self.foldline)}: saved {amount} ({share:.0%})"

    def lines(self) -> Iterator[str]:
        """What the bill consists of, how it was compared, and what is not in it."""
        if self.calls:
            aside = f", {self.aside:,} of them outside the conversation" if self.aside else ""
            kinds = (
                f"{name.replace('_', ' ')} {money(paid)} ({self.tokens[name]:,})"
                for name, paid in self.parts.items()
            )
            yield f"{plural(self.calls, 'call')}{aside}; dollars (tokens): {', '.join(kinds)}"
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
            yield f"{plural(calls, 'call')} at the list price: the price of service tier {tier!r} is not known"

    def _left_out(self) -> str:
        silent, left = self.without_usage, self.unpriced.items()
        unpriced = [f"{plural(n, 'call')} at unknown prices ({name})" for name, n in left]
        return "; ".join(
            [f"{plural(silent, 'call')} whose usage the log lacks"] * bool(silent) + unpriced
        )


def _rounded(_owner: object, _field: object, value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def money(dollars: float, less: float = 0.0) -> str:
    """An amount in dollars; or the difference of two, as they are shown: who subtracts these finds it."""
    if less:
        dollars, less = (round(each, 2 if each >= 1 else 3) for each in (dollars, less))
        dollars -= less
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.3f}"


def plural(number: int, word: str) -> str:
    """A number with its noun: `1 call`, `2 calls`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def recorded_bill(
    calls: Sequence[UsageRecorded | None], aside: Sequence[UsageRecorded]
) -> RecordedBill:
    """The bill of the calls of a conversation (None: usage not reported), and of others.

    A call that went through a gateway costs what its bill says: that knows more than the log, such as the time for
    which the cache is kept.
    """
    tokens, unpriced, tiers = Counter[str](), Counter[str](), Counter[str]()
    parts, models = defaultdict[str, float](float), defaultdict[str, float](float)
    guessed = dict[str, str]()
    silent, numbers = 0, list[int]()
    for number, usage in enumerate((*calls, *aside)):
        if usage is None or not usage.input + usage.output:
            silent += 1
            continue
        billed = usage.bill.paid if usage.bill else None
        if (model := priced_model(usage.model)) is None:
            if billed is None:
                unpriced[usage.model or "unknown"] += 1
                continue
            model = ORDINARY  # divides what was paid among the kinds
        numbers.append(number)
        listed = usage_price(usage, model)
        paid = listed if billed is None else billed
        models[usage.model] += paid
        for name, count, dollars in _kinds(usage, model):
            tokens[name] += count
            parts[name] += dollars * paid / (listed or 1.0)
        guessed |= {} if model.known else {usage.model: model.name}
        tiers += Counter([usage.tier] if usage.tier else [])
    return RecordedBill(
        dollars=sum(models.values()),
        calls=len(numbers),
        aside=sum(number >= len(calls) for number in numbers),
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
    bill: RecordedBill, calls: Sequence[RecordedCall], summaries: float, *, is_kept: bool = True
) -> RecordedBill:
    """The bill, and what its calls would have cost with other requests; `summaries`: dollars paid for their pages.

    `is_kept`: whether these ask the provider to keep them as long as the recorded ones did; else for its shortest time.
    """
    recorded = [
        (call, model)
        for call in calls
        if call.usage.input and (model := priced_model(call.usage.model))
    ]
    if not recorded:
        return bill
    unlogged, growth = unlogged_in([(call.usage, call.full) for call, _ in recorded])
    seconds = kept_in([(call.at, call.usage) for call, _ in recorded])
    compared = _Comparison(unlogged, growth, seconds, is_kept)
    before, more, sent = dict[str, _SentCall](), summaries, None
    for call, model in recorded:
        is_first, usage = sent is None, call.usage
        sent = compared.sent(call, sent)
        if not is_first or call.step.total != call.full:  # not the same request as the recorded one
            step = compared.billed(sent, before.get(usage.model, sent), model)
            more += price(step, model, usage.output) - usage_price(usage, model)
        before[usage.model] = sent
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


def kept_in(calls: Sequence[tuple[float, UsageRecorded]]) -> float:
    """The seconds for which the provider's cache kept the prompts of these calls (time, and what was reported): for which
    most of them asked; where it caches by itself, the longest pause after which most of a prompt was still read."""
    models = {usage.model: model for _, usage in calls if (model := priced_model(usage.model))}
    written = Counter[int]()
    pauses = [0.0]
    for (began, before), (at, usage) in pairwise([*calls[:1], *calls]):
        model = models.get(usage.model)
        if model and provider_of(model).limits(model).automatic:
            is_read = usage.model == before.model and 2 * usage.cache_read >= before.input > 0
            pauses += [at - began, min(model.cache_ttls)] if is_read else []
        elif model:
            written.update(usage_written(usage, model))
    return max(*pauses, max(written, key=lambda seconds: written[seconds], default=0))


@attrs.frozen
class _SentCall:
    """A recorded call, and how large its prompt would have been with the whole history."""

    call: RecordedCall
    whole: float
    """In the provider's tokens: as reported, unless the agent has cut its history."""
    ratio: float
    """The provider's tokens of what the log has, for each by our count."""
    is_cut: bool


@attrs.frozen
class _Comparison:
    """Bills other requests in place of the recorded ones. A request that equals the recorded one costs the same."""

    unlogged: int
    growth: float
    seconds: float
    """As `kept_in`."""
    is_kept: bool
    """As in `compared_bill`."""

    def sent(self, call: RecordedCall, last: _SentCall | None) -> _SentCall:
        """What a recorded call says, given the call before it."""
        tokens = call.usage.input
        ours = self.growth * (call.full - (last.call.full if last else 0))
        expected = ours + (last.call.usage.input if last else self.unlogged)
        error = tokens - expected
        is_cut = last is not None and tokens < (1 - CUT) * last.call.usage.input
        is_back = last is not None and last.is_cut and error > CUT * expected
        correction = 0 if is_cut or is_back else error
        whole = ours + (last.whole if last else self.unlogged) + correction
        ratio = max(whole - self.unlogged, 0) / max(call.full, 1)
        return _SentCall(call, whole, ratio, is_cut=is_cut)

    def billed(self, sent: _SentCall, last: _SentCall, model: Model) -> CacheStep:
        """How the request for a call is billed, in the provider's tokens."""
        (_, usage, _, step), share = sent.call, self._cached_share(sent, last, model)
        begin = _beginning(usage, model, self.unlogged)
        if sent.is_cut and share:  # what the agent wrote anew there is a part of its own cut
            begin = CacheStep(read=begin.total)
        total = round(sent.ratio * step.total)
        read = min(round(share * last.ratio * step.read), total)
        uncached = max(min(usage.uncached - begin.uncached, total - read), 0)
        new = {self._ttl(usage, model): total - read - uncached}
        return CacheStep(
            read=begin.read + read,
            written=Counter(begin.written) + Counter(new),
            uncached=begin.uncached + uncached,
        )

    def _cached_share(self, sent: _SentCall, last: _SentCall, model: Model) -> float:
        """The share of the last prompt, after its beginning, that the provider's cache still had. Where the agent cut its
        history, usage does not tell: all of it, unless the cache was cold."""
        pause, limits = sent.call.at - last.call.at, provider_of(model).limits(model)
        if not (self.is_kept or limits.automatic) and pause >= min(model.cache_ttls):
            return 0.0
        if sent.is_cut:
            return float(pause < self.seconds)
        before = last.call.usage.input - self.unlogged
        return max(sent.call.usage.cache_read - self.unlogged, 0) / before if before > 0 else 1.0

    def _ttl(self, usage: UsageRecorded, model: Model) -> int:
        """The seconds for which the new tokens of a request are kept."""
        written = usage_written(usage, model)
        if self.is_kept and written:
            return max(written, key=lambda seconds: written[seconds])
        times = provider_of(model).rates(model, usage.input).writes
        fitting = [seconds for seconds in times if self.is_kept and seconds <= self.seconds]
        return max(fitting, default=min(times))


def _beginning(usage: UsageRecorded, model: Model, unlogged: int) -> CacheStep:
    """What the log lacks. Any request for the call begins with it, and is billed for it as the recorded one was."""
    tokens = min(unlogged, usage.input)
    read = min(tokens, usage.cache_read)
    new, by_ttl = min(tokens - read, usage.cache_write), usage_written(usage, model)
    written = {max(by_ttl, key=lambda seconds: by_ttl[seconds]): new} if new else dict[int, int]()
    return CacheStep(read=read, written=written, uncached=tokens - read - new)
