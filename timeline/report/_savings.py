"""What the calls of a gateway cost, added up and in words: of a running gateway, or read back from its store.

Each answered call leaves a `Bill` in its timeline's log, so the figures of a store are the sum of its bills. A fork
begins with a copy of the bills of its origin; they are the same events, and each is counted once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from blocks import EventId, TimelineId, UsageRecorded, decode_event
from persistence import EventStore
from timeline.billing import money, plural

PAGE: Final = 500
_BILL: Final = b'"bill":'
NOTHING: Final = money(0.0)
"""An amount of money, as it is printed, that counts as none."""


@attrs.frozen(kw_only=True)
class Savings:
    """The cost of calls and what it would have been without the gateway, in dollars."""

    calls: int = 0
    """Answered calls to a model whose cost is known; all figures in tokens and dollars are about these."""
    unreported: int = 0
    """Answered calls whose usage is not known: the answer reported none, or the gateway could not read the request."""
    unpriced: Mapping[str, int] = attrs.field(factory=dict[str, int])
    """Number of answered calls by model, for models whose prices are not known."""
    forgotten: int = 0
    """Timelines whose oldest events were forgotten, and with them the bills in those."""
    cut: int = 0
    """Calls whose answers broke off before their tokens were reported: the figures have only their prompts."""
    rewritten: int = 0
    """Calls for which another request was sent than the client wrote."""
    passed: int = 0
    """Other requests that were forwarded, for example those that count tokens."""
    failed: int = 0
    """Requests that were refused, here or by the provider, or got no answer."""
    tokens: int = 0
    """Tokens of all prompts, as the provider counted them."""
    alone_tokens: int = 0
    """Tokens of the prompts of `alone`."""
    too_long: int = 0
    """Calls for which the prompt of `alone` is longer than the model takes: the client would have folded, and paid less."""
    output_tokens: int = 0
    paid: float = 0.0
    """The amount paid for prompts and answers, by the provider's usage."""
    alone: float = 0.0
    """The cost of the same work without the gateway: the whole history in each call, with the client's own cache marks,
    and without the tools with which an agent reads folded content back."""
    uncached: float = 0.0
    """The same without the provider's cache, whose savings are not due to the gateway."""
    possible: float = 0.0
    """What the rendered requests would have saved where they were only recorded; below 0: they would have cost
    more."""
    busts: int = 0
    """Requests that lost a cached prefix because of the gateway, not counting compactions."""
    compactions: int = 0
    timelines: int = 0
    record_only: bool = False

    @property
    def requests(self) -> int:
        """All requests that came by."""
        unknown = self.unreported + sum(self.unpriced.values())
        return self.calls + unknown + self.passed + self.failed

    @property
    def full(self) -> float:
        """The cost of sending everything. As long as no request was rewritten, everything was sent, and this is the
        amount paid, to the last digit; `alone` then differs from it by the tools alone."""
        return self.alone if self.rewritten else self.paid

    @property
    def full_tokens(self) -> int:
        """Tokens of the prompts of `full`."""
        return self.alone_tokens if self.rewritten else self.tokens

    @property
    def caching(self) -> float:
        """What the provider's own cache would save of the cost without the gateway."""
        return self.uncached - self.alone

    @property
    def saved(self) -> float:
        """The savings compared with sending everything; below 0: it cost more."""
        return self.full - self.paid

    @property
    def would(self) -> float:
        """The cost of the rendered requests; with `record_only`, what it would have been if they had been sent."""
        return self.paid - self.possible

    @classmethod
    def of(cls, usage: UsageRecorded) -> "Savings":
        """The figures of one call."""
        bill = usage.bill
        if bill is None:
            return cls()
        if bill.paid is None:
            return cls(unpriced={usage.model: 1}) if usage.input else cls(unreported=1)
        return cls(
            calls=1,
            cut=bill.cut,
            rewritten=bill.rewritten,
            tokens=usage.input,
            alone_tokens=bill.full_tokens,
            too_long=bill.too_long,
            output_tokens=usage.output,
            paid=bill.paid,
            alone=bill.full,
            uncached=bill.uncached,
            possible=bill.possible,
            busts=bill.bust,
            compactions=bill.compactions,
        )

    def __add__(self, other: "Savings") -> "Savings":
        """The sum; `timelines` is right if the two have none in common."""
        names = {field.name for field in attrs.fields(Savings)} - {"unpriced", "record_only"}
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        unpriced = Counter(self.unpriced) + Counter(other.unpriced)
        return attrs.evolve(self, **sums, unpriced=dict(unpriced))

    def json(self) -> dict[str, object]:
        """The figures for machines."""
        names = ("full", "full_tokens", "caching", "saved", "would")
        derived = {name: getattr(self, name) for name in names}
        return {**attrs.asdict(self), **derived}

    def lines(self) -> tuple[str, ...]:
        """The figures in words."""
        unknown = tuple(self._unknown())
        if not self.calls:
            which = " whose cost is known" if unknown else ""
            failed = f", {self.failed:,} refused or failed" if self.failed else ""
            others = f"{plural(self.passed, 'other request')} forwarded{failed}"
            return (f"no calls to a model{which}; {others}", *unknown)
        rewritten = f"{self.rewritten:,} of them rewritten" if self.rewritten else "none rewritten"
        done = (
            f"{plural(self.calls, 'call')}, {rewritten}: {self.tokens:,} prompt tokens, compactions: {self.compactions:,},"
            f" cache busts without a compaction: {self.busts:,}, timelines: {self.timelines:,}"
        )
        word = "more" if self.caching >= 0 else "less"
        beyond = (
            f"; in {plural(self.too_long, 'call')} longer than the model takes: the agent would have shortened them,"
            " and paid less"
        )
        alone = (
            f"without foldline: {self.full_tokens:,} prompt tokens, {money(self.full)} with the client's own cache marks"
            f" (without the provider's cache it would be {money(abs(self.caching))} {word})"
            f"{beyond if self.rewritten and self.too_long else ''}"
        )
        return self.headline(), done, alone, *unknown

    def headline(self) -> str:
        """What was paid, and what was saved, in the words of a replay."""
        return f"bill {money(self.paid)} recorded; {self.verdict()}"

    def verdict(self) -> str:
        """What was saved, or what would have been saved where nothing was changed, in words."""
        possible = f"would have cost {_part(self.possible, self.full, 'less', 'more')}"
        is_possible = not _is_nothing(self.possible)
        if is_possible and (self.record_only or not self.rewritten):
            return f"with foldline it {possible}"
        if self.record_only:
            return "nothing would have been saved, nothing lost"
        done = self._done()
        return f"{done}; what was only recorded {possible}" if is_possible else done

    def _done(self) -> str:
        if self.saved < 0 and not _is_nothing(self.saved):
            return f"with foldline it cost {_part(self.saved, self.full, '', 'more')}"
        if (saved := money(self.full, self.paid)) != NOTHING and self.saved > 0:
            share, most = f" ({self.saved / self.full:.0%})", "at most " * (self.too_long > 0)
            return f"without foldline {money(self.full)}: saved {most}{saved}{share}"
        extra = 0.0 if self.rewritten else max(self.paid - self.alone, 0.0)
        if _is_nothing(extra):
            return "nothing saved, nothing lost"
        tools = f"{money(extra)} ({extra / self.paid:.0%})"
        return f"nothing saved; the tools that read folded content back cost {tools}"

    def _unknown(self) -> Iterator[str]:
        if self.unreported:
            yield f"not counted: {plural(self.unreported, 'call')} whose usage is not known"
        if self.forgotten:
            yield f"not counted: the calls in forgotten events of {plural(self.forgotten, 'timeline')}"
        if self.cut:
            yield f"not counted: the answers of {plural(self.cut, 'call')} that broke off"
        if self.unpriced:
            count, names = sum(self.unpriced.values()), ", ".join(sorted(self.unpriced))
            yield f"not counted: {plural(count, 'call')} at unknown prices ({names}); `foldline models` adds a model"


def _part(saved: float, full: float, less: str, more: str) -> str:
    """A difference and its share of the whole, in words."""
    share = f" ({abs(saved) / full:.0%})" if full else ""
    return f"{money(abs(saved))} {less if saved > 0 else more}{share}"


def _is_nothing(amount: float) -> bool:
    return money(abs(amount)) == NOTHING


def lately_billed(
    store: EventStore, name: TimelineId, after: int, since: float
) -> list[UsageRecorded]:
    """The usage of the newest calls of a timeline that have a bill, oldest first: all that came after a version and a time
    (seconds since the epoch), and at least one if there are any after that version. Reads no more than needed."""
    usages: list[UsageRecorded] = []
    after, last = max(after, store.kept(name).forgotten), store.head(name)
    while last > after and not (usages and usages[0].at < since):
        first = max(after, last - PAGE)
        usages[:0] = _bills(store.log_bytes(name, after=first, last=last))
        last = first
    return usages


def _bills(page: Iterable[tuple[int, bytes]]) -> Iterator[UsageRecorded]:
    for _, data in page:
        if _BILL in data and isinstance(event := decode_event(data), UsageRecorded) and event.bill:
            yield event


def accounts(
    store: EventStore, group: Callable[[TimelineId, UsageRecorded], str]
) -> tuple[Savings, Mapping[str, Savings]]:
    """The savings of a store as far as it is at hand, and its parts by what `group` says of each call."""
    parts, names = dict[str, Savings](), dict[str, set[TimelineId]]()
    seen = set[EventId]()
    for info in store.list():
        for usage in _bills(store.log_bytes(info.id, after=store.at_hand(info.id)[0].forgotten)):
            if usage.id in seen:
                continue
            seen.add(usage.id)
            name = group(info.id, usage)
            parts[name] = parts.get(name, Savings()) + Savings.of(usage)
            names.setdefault(name, set()).add(info.id)
    counted = {n: attrs.evolve(part, timelines=len(names[n])) for n, part in parts.items()}
    everywhere = set[TimelineId]().union(*names.values())
    forgotten = sum(store.kept(name).forgotten > 0 for name in everywhere)
    total = attrs.evolve(
        sum(counted.values(), Savings()), timelines=len(everywhere), forgotten=forgotten
    )
    return total, counted


def conversation_of(name: TimelineId, _: UsageRecorded) -> str:
    """The conversation of a timeline: forks that the gateway makes belong to the one in which they began."""
    return name.partition("~")[0]
