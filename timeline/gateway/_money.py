"""What each call of a gateway cost, and what the same call would have cost without the gateway.

The amount paid is the provider's token count at the model's prices. For the other amount, the provider's cache is
simulated twice, once with what was sent and once with what the client wrote, and the difference between the two is
added to the amount paid. So as long as nothing was rewritten, both amounts are the same, to the last digit.

A provider has one cache for each account and model, which all conversations share. Each bill in the log has the
entries that its requests left there, so a new process knows what is still in the cache.

The simulation counts in the provider's tokens. The tokens of each block are learnt from the reported usage: if a
request extends the one before it, its new blocks have the difference of the two counts.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from itertools import accumulate, chain, pairwise
from math import inf
from operator import sub
from secrets import token_hex
from threading import Lock
from typing import Any, Final, cast

import attrs
import msgspec
from msgspec.structs import replace

from blocks import Bill, CacheEntry, EventId, Part, TimelineId, UsageRecorded
from blocks.formats import count, obj, string
from persistence import EventStore
from render import Json, Model, provider_of
from timeline.gateway._body import Body
from timeline.gateway._rewriting import Call
from timeline.gateway._savings import Savings, lately_billed
from timeline.replay._cache import CacheRequest, CacheStep, FlatBlock, PromptCache, kept_unasked
from timeline.tokens import TextCounter

_MILLION: Final = 1_000_000
_MINUTES_5: Final = 300
_HOUR: Final = 3_600
_EXPLANATION: Final = FlatBlock(0, "", 0)
"""What the provider puts before tools to explain them."""
_CHARACTERS: Final = 4
"""Characters of ordinary text for each token."""
_OPTIONS: Final = "prompt_cache_options"
_LIST_PRICED: Final = frozenset({"", "auto", "default", "global", "not_available", "standard"})
"""Service tiers, speeds and regions for which the list prices hold."""
_MEMORY: Final = "money"


def account_of(url: str, asked: Mapping[str, str], answered: Mapping[str, str]) -> str:
    """A hash that identifies the account at the provider, by the headers of a request and its answer. The token of a
    subscription changes every few hours, so the account's own name is preferred to it."""
    name = (
        asked.get("x-api-key")
        or asked.get("chatgpt-account-id")
        or answered.get("anthropic-organization-id")
        or asked.get("authorization", "")
    )
    return _hash(url, name)


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


# Tokens.


@attrs.frozen
class Counted:
    """The blocks of a request, as the provider's cache sees them."""

    blocks: Sequence[FlatBlock]
    fixed: int
    """How many of them come before the conversation."""
    unasked: int
    """See `kept_unasked`."""


@attrs.frozen
class _Characters:
    """Counts characters instead of tokens."""

    counter: TextCounter
    name: str = "characters"

    def count(self, text: str) -> int:
        """Its length."""
        return len(text)

    def part(self, part: Part) -> int:
        """As many as its tokens have in ordinary text."""
        return _CHARACTERS * self.counter.part(part)


@attrs.define
class _Scale:
    """One way to estimate tokens, and how well it has done."""

    counter: TextCounter
    sizes: dict[Hashable, int] = attrs.field(factory=dict[Hashable, int], init=False)
    """What it counts in each block, by the block's key."""
    off: float = attrs.field(default=0.0, init=False)
    """The tokens by which its estimates were wrong, in total."""
    _counted: float = attrs.field(default=0.0, init=False)
    _tokens: float = attrs.field(default=0.0, init=False)

    @property
    def ratio(self) -> float:
        """Tokens for each unit."""
        return self._tokens / self._counted if self._counted and self._tokens else 1.0

    def size(self, blocks: Iterable[FlatBlock]) -> int:
        """What it counts in some blocks."""
        return sum(self.sizes[block.key] for block in blocks)

    def learn(self, blocks: Iterable[FlatBlock], tokens: float) -> None:
        """Compare its estimate of some blocks with their tokens."""
        counted = self.size(blocks)
        if self._counted:
            self.off += abs(tokens - counted * self.ratio)
        self._counted += counted
        self._tokens += tokens


@attrs.define(eq=False)
class _Books:
    """The provider's tokens of each block of one conversation.

    They are learnt from the usage of the requests that were sent. What was never sent is estimated: from our tokens or
    from characters, whichever has explained the usage better so far.
    """

    model: Model
    counter: TextCounter
    last: Bill | None
    """The last bill, until the first request is counted."""
    _flats: dict[tuple[str, bytes], Sequence[FlatBlock]] = attrs.field(
        factory=dict[tuple[str, bytes], Sequence[FlatBlock]], init=False
    )
    """The blocks of each message of the newest requests, and of their tools and system prompts, by their JSON."""
    _earlier: dict[tuple[str, bytes], Sequence[FlatBlock]] = attrs.field(
        factory=dict[tuple[str, bytes], Sequence[FlatBlock]], init=False
    )
    _scales: tuple[_Scale, _Scale] = attrs.field(init=False)
    _weights: dict[Hashable, float] = attrs.field(factory=dict[Hashable, float], init=False)
    """The tokens of each block that was sent, by its key."""

    def __attrs_post_init__(self) -> None:
        self._scales = _Scale(self.counter), _Scale(_Characters(self.counter))
        overhead = self.model.tool_overhead_tokens
        for scale, size in zip(self._scales, (overhead, _CHARACTERS * overhead), strict=True):
            scale.sizes[_EXPLANATION.key] = size

    def requests(self, call: Call) -> tuple[Counted, Counted]:
        """The client's request and the rendered one; the same object if nothing was rewritten. The blocks have no tokens
        yet."""
        self._earlier, self._flats = self._flats, {}
        body = call.asked.body
        ours = full = self._counted(body)
        if call.ours is not body.raw:
            ours = self._counted(Body.of(call.ours, body.api))
        if self.last is not None:
            self._anchor(full, self.last.entries)
            self._anchor(ours, self.last.sent_entries or ())
            self.last = None
        return full, ours

    def _counted(self, body: Body) -> Counted:
        tools = self._flat("tools", body.fields.get("tools", b"[]"))
        prompt = self._flat("system", msgspec.json.encode(body.system())) if body.api.prompt else ()
        fixed = [*([_EXPLANATION] if tools else ()), *tools, *prompt]
        blocks = [*fixed, *chain.from_iterable(self._flat("said", raw) for raw in body.said)]
        control = body.value("cache_control")
        if isinstance(control, dict) and blocks:
            self._mark(blocks, cast("Json", control))
        unasked = kept_unasked({_OPTIONS: body.value(_OPTIONS)}, self.model)
        return Counted(blocks, len(fixed), unasked)

    def _mark(self, blocks: list[FlatBlock], control: Json) -> None:
        """Mark the last block that takes a mark, as the provider does if the whole request has one."""
        unmarkable = provider_of(self.model).limits(self.model).unmarkable
        last = max((i for i, b in enumerate(blocks) if b.kind not in unmarkable), default=0)
        ttl = _HOUR if control.get("ttl") == "1h" else _MINUTES_5
        blocks[last] = blocks[last]._replace(ttl=ttl)

    def _flat(self, place: str, raw: bytes) -> Sequence[FlatBlock]:
        known = self._flats.get((place, raw)) or self._earlier.get((place, raw))
        self._flats[place, raw] = known = known or tuple(self._made(place, raw))
        return known

    def _made(self, place: str, raw: bytes) -> Iterable[FlatBlock]:
        provider = provider_of(self.model)
        found: Any = msgspec.json.decode(raw) or []
        if place == "system" and self.model.provider != "anthropic":
            found = [{"role": "developer", "content": found}] if found else []
        system, tools = (found if place == name else [] for name in ("system", "tools"))
        messages = [found] if place == "said" else []
        for where, content in provider.contents(system, tools, messages):
            segment = provider.segment(where, content)
            digest = blake2b(repr(segment.key).encode("utf-8", "surrogatepass"), digest_size=8)
            key = int.from_bytes(digest.digest(), "big")
            for scale in self._scales:
                if key not in scale.sizes:
                    scale.sizes[key] = segment.tokens(scale.counter)
            yield FlatBlock(key, segment.kind, 0, segment.ttl)

    def _anchor(self, counted: Counted, entries: Sequence[CacheEntry]) -> None:
        """Learn the tokens of a request's blocks from the known tokens of some of its prefixes."""
        known = {entry.prefix: entry.tokens for entry in entries}
        numbers = PromptCache.of(self.model).request(counted.blocks).chain
        found = [(n, known[number]) for n, number in enumerate(numbers, 1) if number in known]
        for (first, before), (last, tokens) in pairwise([(0, 0), *found]):
            self._learn(counted.blocks[first:last], tokens - before)

    def weighed(
        self, sent: Counted, other: Counted, usage: UsageRecorded
    ) -> tuple[Counted, Counted]:
        """The request that was sent and the other one, in the provider's tokens; `usage` is that of the first."""
        kept = usage.cache_read + usage.cache_write
        marked = max((i for i, block in enumerate(sent.blocks, 1) if block.ttl), default=0)
        ends = [(marked, kept)] if 0 < kept < usage.input and 0 < marked < len(sent.blocks) else []
        blocks = list[FlatBlock]()
        for (first, before), (last, tokens) in pairwise(
            [(0, 0), *ends, (len(sent.blocks), usage.input)]
        ):
            piece = sent.blocks[first:last]
            self._learn(piece, tokens - before)
            blocks += self._scaled(piece, tokens - before)
        real = attrs.evolve(sent, blocks=blocks)
        if other is sent:
            return real, real
        return real, attrs.evolve(other, blocks=self._scaled(other.blocks, 0))

    def _learn(self, blocks: Sequence[FlatBlock], tokens: float) -> None:
        """Divide tokens among the blocks that have none yet."""
        fresh = [block for block in blocks if block.key not in self._weights]
        rest = tokens - sum(self._weights.get(block.key, 0.0) for block in blocks)
        if not fresh or rest <= 0:
            return
        for scale in self._scales:
            scale.learn(fresh, rest)
        best = min(self._scales, key=lambda scale: scale.off)
        ratio = rest / max(best.size(fresh), 1)
        self._weights.update((block.key, best.sizes[block.key] * ratio) for block in fresh)

    def _scaled(self, blocks: Sequence[FlatBlock], tokens: int) -> list[FlatBlock]:
        """Blocks with their tokens, in whole numbers; they add up to `tokens`, if these are known."""
        best = min(self._scales, key=lambda scale: scale.off)
        weights = [
            self._weights.get(block.key, best.sizes[block.key] * best.ratio) for block in blocks
        ]
        factor = tokens / (sum(weights) or 1.0) if tokens else 1.0
        sums = map(round, accumulate((weight * factor for weight in weights), initial=0.0))
        return [
            block._replace(tokens=after - before)
            for block, (before, after) in zip(blocks, pairwise(sums), strict=True)
        ]


# The cache.


@attrs.frozen(kw_only=True)
class _Steps:
    """How the client's request and the rendered one would have been billed."""

    full: CacheStep
    ours: CacheStep
    entries: tuple[CacheEntry, ...]
    """What the first leaves in the cache."""
    our_entries: tuple[CacheEntry, ...] | None
    """What the second leaves there; None: the same."""


@attrs.define(eq=False)
class _Caches:
    """The provider's cache of an account and a model, as it is and as it would be without the gateway."""

    label: str
    """Its name in bills."""
    full: PromptCache
    ours: PromptCache

    def send(self, call: Call, full: Counted, ours: Counted) -> _Steps:
        """Send both requests of a call."""
        whole = self.full.request(full.blocks, full.unasked)
        rest = whole if ours is full else self.ours.request(ours.blocks, ours.unasked)
        name = call.timeline.id
        return _Steps(
            full=self.full.send(call.at, whole, name),
            ours=self.ours.send(call.at, rest, name),
            entries=_entries(whole, full.fixed),
            our_entries=None if rest is whole else _entries(rest, ours.fixed),
        )

    def remember(self, bill: Bill) -> None:
        """Restore the entries of an earlier call."""
        ours = bill.entries if bill.sent_entries is None else bill.sent_entries
        for cache, entries in ((self.full, bill.entries), (self.ours, ours)):
            for entry in entries:
                cache.remember(entry.prefix, entry.seconds, bill.sent_at + entry.seconds)


def _entries(request: CacheRequest, fixed: int) -> tuple[CacheEntry, ...]:
    """The entries that a request leaves. If the provider caches every prefix, only two: the one before the conversation,
    and the whole request."""
    marks = dict(request.marks)
    if len(marks) > _MARKS_MAX:
        marks = {index: marks[index] for index in (fixed - 1, max(marks)) if index in marks}
    return tuple(
        CacheEntry(prefix=request.chain[index], tokens=request.sums[index], seconds=ttl)
        for index, ttl in marks.items()
    )


_MARKS_MAX: Final = 8
"""No provider takes more marks in one request."""


# Dollars.


def _cost(step: CacheStep, model: Model, output: int) -> float:
    rates = provider_of(model).rates(model, step.total)
    return rates.cost(step.uncached, step.read, step.written, output) / _MILLION


def _as_read(step: CacheStep, sent: CacheStep, read: int) -> CacheStep:
    """A simulated step, given that the provider has read `read` tokens of the request that was `sent`: as large a share
    of what was expected; or, if it was more, as large a share of the rest."""
    if read <= sent.read:
        found = round(step.read * read / sent.read) if sent.read else step.read
    else:
        found = step.total - round((step.total - step.read) * (sent.total - read) / (sent.total - sent.read))
    written, more = dict(step.written), found - step.read
    if more < 0 and written:
        written[max(written, key=lambda ttl: written[ttl])] -= more
        return attrs.evolve(step, read=found, written=written)
    for ttl in sorted(written, reverse=True):
        taken = min(written[ttl], max(more, 0))
        written[ttl], more = written[ttl] - taken, more - taken
    return attrs.evolve(step, read=found, written=written, uncached=step.uncached - more)


def _paid(call: Call, usage: UsageRecorded, response: Json) -> float | None:
    """The cost of a call by its usage; None: the usage or the price is not known."""
    model, told = call.model, obj(response.get("usage"))
    tariff = {string(told.get(name)) for name in ("service_tier", "speed", "inference_geo")}
    tariff.add(string(response.get("service_tier")))
    if not usage.input or not model.known or not tariff <= _LIST_PRICED:
        return None
    written = _written(told, usage, call.asked.seconds or min(model.cache_ttls))
    rates = provider_of(model).rates(model, usage.input)
    return rates.cost(usage.uncached, usage.cache_read, written, usage.output) / _MILLION


def _written(told: Json, usage: UsageRecorded, seconds: int) -> Mapping[int, int]:
    """The tokens written to the cache, by the seconds for which they are kept: `seconds` if the usage does not say."""
    by_time = obj(told.get("cache_creation"))
    if not by_time:
        return {seconds: usage.cache_write} if usage.cache_write else {}
    hours = count(by_time.get("ephemeral_1h_input_tokens"))
    short = usage.cache_write - hours
    return {ttl: tokens for ttl, tokens in ((_MINUTES_5, short), (_HOUR, hours)) if tokens}


@attrs.define(kw_only=True, eq=False)
class Meter:
    """Bills calls, and adds the bills up."""

    store: EventStore
    """The store with the logs of the calls, from which the bills of other processes are read."""
    record_only: bool = False
    """Whether every call is sent as the client wrote it."""
    _sum: Savings = attrs.field(factory=Savings, init=False)
    _names: set[TimelineId] = attrs.field(factory=set[TimelineId], init=False)
    _caches: dict[str, _Caches] = attrs.field(factory=dict[str, _Caches], init=False)
    """By a hash of account and model."""
    _looked: dict[TimelineId, int] = attrs.field(factory=dict[TimelineId, int], init=False)
    """Up to which version each log was read."""
    _found: dict[str, list[Bill]] = attrs.field(factory=dict[str, list[Bill]], init=False)
    """Bills that were read from logs and whose cache was not used here since, by its label."""
    _lock: Any = attrs.field(factory=Lock, init=False)

    def savings(self) -> Savings:
        """Everything so far."""
        with self._lock:
            names, only = len(self._names), self.record_only
            return attrs.evolve(self._sum, timelines=names, record_only=only)

    def passed(self) -> None:
        """Count a request that was forwarded and is no call to a model."""
        with self._lock:
            self._sum = attrs.evolve(self._sum, passed=self._sum.passed + 1)

    def failed(self) -> None:
        """Count a request that was refused or got no answer."""
        with self._lock:
            self._sum = attrs.evolve(self._sum, failed=self._sum.failed + 1)

    def unread(self) -> None:
        """Count an answered call to a model that was forwarded unread."""
        with self._lock:
            self._sum = attrs.evolve(self._sum, unreported=self._sum.unreported + 1)

    def answered(self, call: Call, response: Json, account: str) -> UsageRecorded:
        """Bill an answered call; return its usage with the bill. `account`: see `account_of`."""
        usage = call.rendered.provider.usage(response) if response else None
        usage = usage or UsageRecorded(id=EventId(""), at=call.at)
        usage = replace(usage, model=usage.model or call.model.name)
        with call.conversation.lock:
            books = self._books(call, usage)
            asked, rendered = books.requests(call)
            if self.record_only:
                full, ours = books.weighed(asked, rendered, usage)
            else:
                ours, full = books.weighed(rendered, asked, usage)
        with self._lock:
            caches = self._caches_of(call, account)
            steps = caches.send(call, full, ours)
            bill = self._bill(call, steps, usage, response)
            billed = replace(usage, bill=replace(bill, cache=caches.label))
            self._sum = self._sum.plus(billed)
            self._names.add(call.timeline.id)
        return billed

    def _bill(self, call: Call, steps: _Steps, usage: UsageRecorded, response: Json) -> Bill:
        full, ours, model = steps.full, steps.ours, call.model
        bill = Bill(
            compactions=call.compactions,
            bust=ours.bust and not full.bust and not call.compactions,
            sent_at=call.at,
            entries=steps.entries,
            sent_entries=steps.our_entries,
        )
        paid = _paid(call, usage, response)
        if paid is None:
            return bill
        real, other = (full, ours) if self.record_only else (ours, full)
        costs = (
            _cost(_as_read(step, real, usage.cache_read), model, usage.output)
            for step in (other, real)
        )
        more = sub(*costs)
        return replace(
            bill,
            paid=paid,
            full=paid if self.record_only else paid + more,
            possible=-more if self.record_only else 0.0,
            uncached=_cost(CacheStep(uncached=full.total), model, usage.output),
            full_tokens=full.total,
        )

    def _books(self, call: Call, usage: UsageRecorded) -> _Books:
        """The books of a conversation; new ones go on from its last bill."""
        memory = call.conversation.memory
        books: _Books | None = memory.get(_MEMORY)
        if books is not None and books.model == call.model:
            return books
        with self._lock:
            self._look(call.at - max(call.model.cache_ttls))
        own = lately_billed(self.store, call.timeline.id, 0, inf)
        bills = [each.bill for each in own if each.bill and each.model == usage.model]
        counter = cast("TextCounter", call.timeline.settings.counter)
        books = memory[_MEMORY] = _Books(call.model, counter, bills[-1] if bills else None)
        return books

    def _look(self, since: float) -> None:
        """Read the bills since a time, of all conversations."""
        for info in self.store.list():
            after = self._looked.get(info.id, 0)
            if info.version > after and info.updated_at >= since:
                for usage in lately_billed(self.store, info.id, after, since):
                    if usage.bill:
                        self._found.setdefault(usage.bill.cache, []).append(usage.bill)
                self._looked[info.id] = info.version

    def _caches_of(self, call: Call, account: str) -> _Caches:
        """The caches of an account and a model, with the entries of the bills that were found."""
        model = call.model
        who = _hash(account, model.provider, model.name)
        caches = self._caches.get(who)
        labels = [label for label in self._found if label == _label(who, label)]
        if caches is None:
            salted = next(iter((*labels, *self._found)), token_hex(8))  # one salt for a store
            label = _label(who, salted)
            caches = _Caches(label, PromptCache.of(model), PromptCache.of(model))
            self._caches[who] = caches
        for bill in chain.from_iterable(self._found.pop(label) for label in labels):
            caches.remember(bill)
        return caches


def _label(who: str, like: str) -> str:
    """The name of a cache in bills, with the salt of another name: it tells nobody the account."""
    salt = like.partition(".")[0]
    return f"{salt}.{_hash(salt, who)[:16]}"
