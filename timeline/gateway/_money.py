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
from itertools import accumulate, chain, islice, pairwise
from math import inf
from operator import add
from secrets import token_hex
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, cast

import attrs
import msgspec
from msgspec.structs import replace

from blocks import Bill, CacheEntry, EventId, TimelineId, UsageRecorded
from blocks.formats import Format, obj, string, tier_of
from persistence import EventStore
from render import Json, Model, provider_of
from timeline import model_named
from timeline.billing import (
    CacheRequest,
    CacheStep,
    FlatBlock,
    PromptCache,
    numbered,
    price,
    usage_price,
    whole_prompt_ttl,
    with_read,
)
from timeline.gateway._request import Body
from timeline.gateway._rewriting import AgentCall
from timeline.report import Savings, lately_billed
from timeline.tokens import TokenCounter, Untexted

_EXPLANATION: Final = FlatBlock(0, "", 0)
"""What the provider puts before tools to explain them."""
_CALL_IDS: Final = ("tool_use_id", "tool_call_id", "call_id", "id")
"""Fields with the id of a call, in calls and results."""
_WAITING: Final = frozenset({"WaitForMcpServers"})
"""Tools that a client offers only until those of its servers have come. (As Claude Code 2.1 sends them.)"""
_PRIOR_TOKENS: Final = 20
"""Tokens that count as much as the whole beginning of the first request."""
_CHARACTERS: Final = 4
"""Characters of ordinary text for each token."""
_OPTIONS: Final = "prompt_cache_options"


def account_of(url: str, request: Mapping[str, str], response: Mapping[str, str]) -> str:
    """A hash that identifies the account at the provider, by the headers of a request and its response. The token of a
    subscription changes every few hours, so the account's own name is preferred to it."""
    name = (
        request.get("x-api-key")
        or request.get("chatgpt-account-id")
        or response.get("anthropic-organization-id")
        or request.get("authorization", "")
    )
    return _hash(url, name)


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


# Tokens.


@attrs.frozen
class _Request:
    """The blocks of a request, as the provider's cache sees them."""

    blocks: Sequence[FlatBlock]
    fixed: int
    """How many of them come before the conversation."""
    unasked: int
    """See `whole_prompt_ttl`."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of its prefixes."""
        return numbered(block.key for block in self.blocks)

    def with_tokens(self, tokens: Iterable[float]) -> "_Request":
        """The request with the tokens of its blocks, rounded so that no sum of them is off by more than a half."""
        sums = pairwise(map(round, accumulate(tokens, initial=0.0)))
        blocks = [
            b._replace(tokens=end - start)
            for b, (start, end) in zip(self.blocks, sums, strict=True)
        ]
        return attrs.evolve(self, blocks=blocks)


@attrs.frozen(kw_only=True)
class _Pair:
    """What the client would send without the gateway, and the rendered request; the same object if there is no
    difference."""

    full: _Request
    ours: _Request
    shared: tuple[int, int]
    """How many blocks of each come before the two begin to differ, but for blocks that only the gateway causes."""
    is_aside: bool
    """Whether the call only returns what the agent read back with the gateway's tools: without the gateway, there would
    be no such call."""


@attrs.define
class _Characters:
    """Counts characters instead of tokens."""

    counter: TokenCounter
    parts: int = 0
    """How many pictures and documents it has counted."""
    name: str = "characters"

    def count(self, text: str) -> int:
        return len(text)

    def part(self, part: Untexted) -> int:
        self.parts += 1
        return _CHARACTERS * self.counter.part(part)


@attrs.define
class _Estimator:
    """One way to estimate the tokens of blocks: so many for each unit that it counts, and so many for each block.

    The two numbers are a fit by least squares to the groups of blocks whose tokens are known; errors count relative to
    the square root of the tokens.
    """

    counter: TokenCounter
    sizes: dict[Hashable, int] = attrs.field(factory=dict[Hashable, int], init=False)
    """The units of each block, by its key."""
    error: float = attrs.field(default=0.0, init=False)
    """The squared error of the fit."""
    _rate: float = attrs.field(default=1.0, init=False)
    _each: float = attrs.field(default=0.0, init=False)
    _sums: tuple[float, ...] = attrs.field(default=(0, 0, 1 / _PRIOR_TOKENS, 0, 0, 0), init=False)
    """Of all groups: units times units, units times blocks and blocks times blocks, each divided by the tokens of the
    group; units, blocks and tokens. It begins with a block that has no more tokens than by its units."""

    def tokens(self, block: FlatBlock) -> float:
        """The estimate for one block."""
        return self._rate * self.sizes[block.key] + self._each

    def learn(self, blocks: Sequence[FlatBlock], tokens: float, *, is_first: bool) -> None:
        """Fit to one more group. The beginning of the first request has what is not seen here, so it counts little."""
        u, n, t = sum(self.sizes[block.key] for block in blocks), len(blocks), tokens
        if is_first:
            u, n, t = round(u * (_PRIOR_TOKENS / t)), 0, _PRIOR_TOKENS
        more = (u**2 / t, u * n / t, n**2 / t, u, n, t)
        self._sums = uu, un, nn, u, n, t = tuple(map(add, self._sums, more))
        determinant = uu * nn - un * un
        each = max((n * uu - u * un) / determinant, 0.0) if determinant > 0 else 0.0
        rate = max((u - each * un) / uu, 0.0) if uu else 0.0
        errors = t - 2 * (rate * u + each * n) + rate**2 * uu + 2 * rate * each * un + each**2 * nn
        self._rate, self._each, self.error = rate, each, errors


@attrs.define(eq=False)
class _GatewayBlocks:
    """Knows the blocks that requests have only because of the gateway: the definitions of the tools with which the agent
    reads folded content back, its calls of them, and their results."""

    descriptions: frozenset[str]
    """By which the tools are recognized: every client names them in its own way."""
    _names: set[str] = attrs.field(factory=set[str], init=False)
    _calls: set[str] = attrs.field(factory=set[str], init=False)
    keys: set[Hashable] = attrs.field(factory=set[Hashable], init=False)
    _earlier: tuple[Sequence[Hashable], int] = attrs.field(default=((), 0), init=False)
    """The keys of the previous request without these blocks, and how many it had of these."""

    def meet(self, tools: Iterable[Json]) -> None:
        """Look at the tools of a request, also at those that a client defers."""
        for tool in tools:
            inner = obj(tool.get("function")) or tool
            name, description = string(inner.get("name")), string(inner.get("description"))
            if description in self.descriptions or (self.descriptions and name in _WAITING):
                self._names.add(name)

    def see(self, place: str, key: Hashable, content: Json) -> None:
        """Look at a block of a request, in the order of its blocks."""
        inner = obj(content.get("function")) or content
        name = string(inner.get("name"))
        call = next((string(content[field]) for field in _CALL_IDS if content.get(field)), "")
        if place == "tools":
            self.keys |= {key} if name in self._names else set()
        elif call and (name in self._names or (not name and call in self._calls)):
            self._calls.add(call)
            self.keys.add(key)

    def without(self, request: _Request) -> _Request:
        """A request without these blocks; the same object if it has none. A mark moves to the block before."""
        blocks, fixed = list[FlatBlock](), 0
        for number, block in enumerate(request.blocks):
            if block.key not in self.keys:
                blocks.append(block)
                fixed += number < request.fixed
            elif block.ttl and blocks:
                blocks[-1] = blocks[-1]._replace(ttl=max(block.ttl, blocks[-1].ttl))
        is_same = len(blocks) == len(request.blocks)
        return request if is_same else _Request(blocks, fixed, request.unasked)

    def shared(self, full: _Request, ours: _Request) -> tuple[int, int]:
        """How many blocks of each request come before the two begin to differ otherwise."""
        same = 0
        for number, block in enumerate(ours.blocks):
            if same < len(full.blocks) and full.blocks[same].key == block.key:
                same += 1
            elif block.key not in self.keys:
                return same, number
        return same, len(ours.blocks)

    def is_aside(self, request: _Request, full: _Request) -> bool:
        """Whether a request differs from the previous one only by such blocks."""
        keys, count = [block.key for block in full.blocks], len(request.blocks) - len(full.blocks)
        (before, number), self._earlier = self._earlier, (keys, count)
        return keys == before and count > number


_Flats: TypeAlias = dict[tuple[str, bytes], Sequence[FlatBlock]]


@attrs.define(eq=False)
class _Books:
    """The provider's tokens of each block of one conversation.

    They are learnt from the usage of the requests that were sent. What was never sent is estimated: from our tokens or
    from characters, whichever has explained the usage better so far.
    """

    model: Model
    counter: TokenCounter
    reading: _GatewayBlocks
    sums: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    """The known tokens of prefixes, by their number: at first, those of the last bill."""
    seen: dict[TimelineId, int] = attrs.field(factory=dict[TimelineId, int], init=False)
    """Up to which version they know the bills of each timeline of the conversation."""
    _flats: _Flats = attrs.field(factory=_Flats, init=False)
    """The blocks of each message of the newest requests, and of their tools and system prompts, by a hash of their JSON."""
    _earlier: _Flats = attrs.field(factory=_Flats, init=False)
    """The same of the requests of the call before."""
    _characters: _Characters = attrs.field(init=False)
    _scales: tuple[_Estimator, _Estimator] = attrs.field(init=False)
    _pictures: set[Hashable] = attrs.field(factory=set[Hashable], init=False)
    """The keys of blocks that are not only text."""
    _alike: dict[tuple[int, ...], float] = attrs.field(
        factory=dict[tuple[int, ...], float], init=False
    )
    """The tokens of such a block by its size: pictures of one size have as many, and are not always sent in one form."""
    _weights: dict[Hashable, float] = attrs.field(factory=dict[Hashable, float], init=False)
    """The tokens of each block that was sent, by its key."""

    def __attrs_post_init__(self) -> None:
        self._characters = _Characters(self.counter)
        self._scales = _Estimator(self.counter), _Estimator(self._characters)
        overhead = self.model.tool_overhead_tokens
        for scale, size in zip(self._scales, (overhead, _CHARACTERS * overhead), strict=True):
            scale.sizes[_EXPLANATION.key] = size

    def requests(self, call: AgentCall) -> _Pair:
        """The two requests of a call. Their blocks have no tokens yet."""
        self._earlier, self._flats = self._flats, {}
        body = call.request.body
        ours = client = self._counted(body)
        if call.ours is not body.raw:
            ours = self._counted(Body.of(call.ours, body.api))
        full = self.reading.without(client)
        shared, is_aside = self.reading.shared(full, ours), self.reading.is_aside(client, full)
        return _Pair(full=full, ours=ours, shared=shared, is_aside=is_aside)

    def _counted(self, body: Body) -> _Request:
        tools = self._flat("tools", body.fields.get("tools", b"[]"))
        prompt = self._flat("system", msgspec.json.encode(body.system())) if body.api.prompt else ()
        fixed = [*([_EXPLANATION] if tools else ()), *tools, *prompt]
        blocks = [*fixed, *chain.from_iterable(self._flat("said", raw) for raw in body.items)]
        control = body.value("cache_control")
        if isinstance(control, dict) and blocks:
            # the provider marks the last block that takes a mark
            unmarkable = provider_of(self.model).limits(self.model).unmarkable
            last = max((i for i, b in enumerate(blocks) if b.kind not in unmarkable), default=0)
            ttl = 3_600 if cast("Json", control).get("ttl") == "1h" else 300
            blocks[last] = blocks[last]._replace(ttl=ttl)
        whole_ttl = whole_prompt_ttl({_OPTIONS: body.value(_OPTIONS)}, self.model)
        return _Request(blocks, len(fixed), whole_ttl)

    def _flat(self, place: str, raw: bytes) -> Sequence[FlatBlock]:
        name = place, blake2b(raw, digest_size=16).digest()
        blocks = self._flats.get(name) or self._earlier.get(name)
        self._flats[name] = blocks = blocks or tuple(self._made(place, raw))
        return blocks

    def _made(self, place: str, raw: bytes) -> Iterable[FlatBlock]:
        provider = provider_of(self.model)
        value: Any = msgspec.json.decode(raw) or []
        if place == "system" and self.model.provider != "anthropic":
            value = [{"role": "developer", "content": value}] if value else []
        sections: Json = {place: [value] if place == "said" else value}
        system, tools, messages = (sections.get(name, []) for name in ("system", "tools", "said"))
        self.reading.meet(tools)
        for where, content in provider.contents(system, tools, messages):
            segment = provider.segment(where, content)
            digest = blake2b(repr(segment.key).encode("utf-8", "surrogatepass"), digest_size=8)
            key = int.from_bytes(digest.digest(), "big")
            parts = self._characters.parts
            for scale in self._scales:
                if key not in scale.sizes:
                    scale.sizes[key] = segment.tokens(scale.counter)
            if self._characters.parts > parts:
                self._pictures.add(key)
            self.reading.see(where, key, content)
            yield FlatBlock(key, segment.kind, 0, segment.ttl)

    def weighed(self, requests: _Pair, usage: UsageRecorded, *, is_full: bool) -> _Pair:
        """The requests with their tokens; `usage` is that of the rendered one or, with `is_full`, of the other."""
        real, other = requests.ours, requests.full
        if is_full:
            real, other = other, real
        if other is not real:
            self._learn(other, other.numbers)
        rest = sent = self._measured(real, usage)
        if other is not real:
            rest = other.with_tokens(map(self._tokens, other.blocks))
        self._forget_earlier(real, other)
        full, ours = (sent, rest) if is_full else (rest, sent)
        return attrs.evolve(requests, full=full, ours=ours)

    def _measured(self, real: _Request, usage: UsageRecorded) -> _Request:
        """A request that was sent, with tokens that agree with its usage."""
        blocks, numbers = real.blocks, real.numbers
        if not usage.input:
            return real.with_tokens(map(self._tokens, blocks))
        cached = usage.cache_read + usage.cache_write
        marked = max((i for i, block in enumerate(blocks, 1) if block.ttl), default=0)
        if 0 < cached < usage.input and 0 < marked < len(blocks):
            self.sums[numbers[marked - 1]] = cached
        self.sums[numbers[-1]] = usage.input
        tokens = list[float]()
        for first, last, total in self._learn(real, numbers):
            piece = [self._tokens(block) for block in blocks[first:last]]
            factor = total / (sum(piece) or 1.0)
            tokens += [each * factor for each in piece]
        return real.with_tokens(tokens)

    def _learn(self, counted: _Request, numbers: Sequence[int]) -> Sequence[tuple[int, int, int]]:
        """Learn the tokens of blocks between prefixes whose tokens are known. Returns these pieces: where each begins and
        ends, and its tokens."""
        prefixes = [(0, 0)]
        for end, number in enumerate(numbers, 1):
            tokens = self.sums.get(number, 0)
            while tokens and prefixes[-1][1] > tokens:  # a count that the provider has changed
                prefixes.pop()
            prefixes += [(end, tokens)] if tokens else []
        pieces = [(a, b, after - before) for (a, before), (b, after) in pairwise(prefixes)]
        for first, last, tokens in pieces:
            self._divide(counted.blocks[first:last], tokens, is_first=not first)
        return pieces

    def _divide(self, blocks: Sequence[FlatBlock], tokens: int, *, is_first: bool) -> None:
        """Divide tokens among those blocks that have none yet. What is not as estimated is counted for the pictures among
        them or, without pictures, for the client's own blocks."""
        fresh = [block for block in blocks if block.key not in self._weights]
        rest = tokens - sum(self._weights.get(block.key, 0.0) for block in blocks)
        if not fresh or rest <= 0:
            return
        pictures = [block for block in fresh if block.key in self._pictures]
        if len(fresh) == len(blocks) and not (pictures and not is_first):
            for scale in self._scales:
                scale.learn(fresh, rest, is_first=is_first)
        own = [block for block in fresh if block.key not in self.reading.keys]
        vague = fresh if is_first else pictures or own or fresh
        keys = {block.key for block in vague}
        estimates = {block.key: self._best.tokens(block) for block in fresh}
        left = rest - sum(estimates[block.key] for block in fresh if block.key not in keys)
        if left <= 0:
            vague, keys, left = fresh, set(estimates), rest
        ratio = left / (sum(estimates[block.key] for block in vague) or 1.0)
        self._weights |= {k: n * ratio if k in keys else n for k, n in estimates.items()}
        self._alike |= {self._size(block): self._weights[block.key] for block in pictures}

    @property
    def _best(self) -> _Estimator:
        return min(self._scales, key=lambda scale: scale.error)

    def _tokens(self, block: FlatBlock) -> float:
        weight = self._weights.get(block.key)
        if weight is None and block.key in self._pictures:
            weight = self._alike.get(self._size(block))
        return self._best.tokens(block) if weight is None else weight

    def _size(self, block: FlatBlock) -> tuple[int, ...]:
        return tuple(scale.sizes[block.key] for scale in self._scales)

    def _forget_earlier(self, *requests: _Request) -> None:
        """Forget what only earlier requests had."""
        keys = {block.key for blocks in self._flats.values() for block in blocks}
        keys.add(_EXPLANATION.key)
        numbers = {number for request in requests for number in request.numbers}
        self.sums = {number: tokens for number, tokens in self.sums.items() if number in numbers}
        self._weights = {key: weight for key, weight in self._weights.items() if key in keys}
        for scale in self._scales:
            scale.sizes = {key: size for key, size in scale.sizes.items() if key in keys}


# The cache.


@attrs.frozen
class _Simulation:
    """How a request would have been billed."""

    step: CacheStep
    entries: tuple[CacheEntry, ...]
    """What it leaves in the cache."""
    shared: int
    """Its tokens up to where the client's request and the rendered one begin to differ."""


@attrs.define(eq=False)
class _Caches:
    """The provider's cache of an account and a model, as it is and as it would be without the gateway."""

    label: str
    """Its name in bills."""
    full: PromptCache
    ours: PromptCache

    def send(
        self, call: AgentCall, requests: _Pair, totals: Mapping[int, int]
    ) -> tuple[_Simulation, _Simulation]:
        """Send both requests of a call; `totals` has the tokens of some of their prefixes, by their number."""
        both = zip(
            (self.full, self.ours), (requests.full, requests.ours), requests.shared, strict=True
        )
        sent = list[_Simulation]()
        for cache, request, shared in both:
            flat = cache.request(request.blocks, request.unasked)
            step = cache.send(call.at, flat, call.timeline.id)
            entries = _entries(flat, request.fixed, totals)
            sent.append(
                _Simulation(step, entries, sum(block.tokens for block in request.blocks[:shared]))
            )
        full, ours = sent
        return attrs.evolve(full, step=CacheStep()) if requests.is_aside else full, ours

    def remember(self, conversation: str, bill: Bill) -> None:
        """Restore the entries of an earlier call, or of another process's."""
        ours = bill.entries if bill.sent_entries is None else bill.sent_entries
        for cache, entries in ((self.full, bill.entries), (self.ours, ours)):
            cache.lose_track(conversation)
            for entry in entries:
                cache.remember(entry.prefix, entry.seconds, bill.sent_at + entry.seconds)


def _entries(
    request: CacheRequest, fixed: int, totals: Mapping[int, int]
) -> tuple[CacheEntry, ...]:
    """The entries that a request leaves, and the first of its other prefixes whose tokens are known. If the provider
    caches every prefix, only two entries: the one before the conversation, and the whole request."""
    marks = dict(request.marks)
    if len(marks) > _MARKS_MAX:
        marks = {index: marks[index] for index in (fixed - 1, max(marks)) if index in marks}
    others = (n for n, number in enumerate(request.chain) if number in totals and n not in marks)
    marks |= dict.fromkeys(islice(others, _KNOWN_MAX), 0)
    return tuple(
        CacheEntry(prefix=request.chain[index], tokens=request.sums[index], seconds=ttl)
        for index, ttl in sorted(marks.items())
    )


_STEP_TOKENS: Final = 128
"""A provider without marks reads whole multiples of this. (OpenAI's documentation: prompt caching.)"""
_MARKS_MAX: Final = 8
"""No provider takes more marks in one request."""
_KNOWN_MAX: Final = 3


# Dollars.


def _read_elsewhere(sent: _Simulation, unsent: _Simulation, read: int) -> int:
    """What the provider would have read of the other request, given what it has read of the one that was sent: the
    simulated tokens, corrected as far as the two have the same beginning."""
    real, other, shared = sent.step, unsent.step, (sent.shared, unsent.shared)
    if 0 <= real.read - read < _STEP_TOKENS:
        return max(other.read - (real.read - read), 0)
    due = min(real.read, shared[0])
    if read <= due:
        return round(other.read * read / due) if due else other.read
    if read <= real.read:
        return other.read
    if read <= shared[0]:
        return max(other.read, round(read * shared[1] / shared[0]))
    missed = (real.total - read) / (real.total - real.read)
    return other.total - round((other.total - other.read) * missed)


def _paid(model: Model, usage: UsageRecorded, response: Json, seconds: int = 0) -> float | None:
    """The cost of a call by its usage; None: the usage or the price is not known. `seconds`: see `ClientRequest`."""
    if not usage.input or not model.known or tier_of(obj(response.get("usage")), response):
        return None
    return usage_price(usage, model, response, seconds or min(model.cache_ttls))


def _usage(model: Model, response: Json, at: float) -> UsageRecorded:
    """What an answer reports; nothing if it reports none."""
    usage = provider_of(model).usage(response) if response else None
    usage = usage or UsageRecorded(id=EventId(""), at=at)
    return replace(usage, model=usage.model or model.name)


@attrs.define(kw_only=True, eq=False)
class BillMeter:
    """Bills calls, and adds the bills up."""

    store: EventStore
    """The store with the logs of the calls, from which the bills of other processes are read."""
    record_only: bool = False
    """Whether every call is sent as the client wrote it."""
    reading: frozenset[str] = frozenset()
    """The descriptions of the tools with which agents read folded content back."""
    _sum: Savings = attrs.field(factory=Savings, init=False)
    _names: set[TimelineId] = attrs.field(factory=set[TimelineId], init=False)
    _caches: dict[str, _Caches] = attrs.field(factory=dict[str, _Caches], init=False)
    """By a hash of account and model."""
    _versions: dict[TimelineId, int] = attrs.field(factory=dict[TimelineId, int], init=False)
    """Up to which version each log was read."""
    _sent: set[float] = attrs.field(factory=set[float], init=False)
    """When the calls were sent that were billed here."""
    _log_bills: dict[str, list[tuple[TimelineId, Bill]]] = attrs.field(
        factory=dict[str, list[tuple[TimelineId, Bill]]], init=False
    )
    """Bills of others that were read from logs and whose cache was not used here since, by its label."""
    _lock: Any = attrs.field(factory=Lock, init=False)

    def savings(self) -> Savings:
        """Everything so far."""
        with self._lock:
            names, only = len(self._names), self.record_only
            return attrs.evolve(self._sum, timelines=names, record_only=only)

    def count(self, kind: Literal["passed", "failed", "unreported"]) -> None:
        """Count a request without a bill: forwarded and no call to a model, or refused or without an answer, or an
        answered call to a model that was forwarded unread."""
        with self._lock:
            self._sum = attrs.evolve(self._sum, **{kind: getattr(self._sum, kind) + 1})

    def forwarded(self, provider: Format, response: Json) -> None:
        """Bill an answered call that was forwarded as it came and has no timeline."""
        name = string(response.get("model"))
        model = attrs.evolve(model_named(name), provider=provider)
        usage = _usage(model, response if name else {}, 0.0)
        paid = _paid(model, usage, response)
        step = CacheStep(uncached=usage.input)
        bill = Bill(
            paid=paid,
            full=paid or 0.0,
            uncached=price(step, model, usage.output) if paid else 0.0,
            full_tokens=usage.input,
            cut=response.get("stop_reason", "") is None,  # as in `answered`
        )
        with self._lock:
            self._sum += Savings.of(replace(usage, bill=bill))

    def answered(self, call: AgentCall, response: Json, account: str) -> UsageRecorded:
        """Bill an answered call; return its usage with the bill. `account`: see `account_of`."""
        usage = _usage(call.model, response, call.at)
        with call.conversation.lock:
            books = self._books(call, usage)
            requests = books.weighed(books.requests(call), usage, is_full=self.record_only)
            sums = books.sums
        with self._lock:
            caches = self._caches_of(call, account)
            full, ours = caches.send(call, requests, sums)
            bill = Bill(
                cache=caches.label,
                rewritten=call.is_rewritten,
                compactions=call.compactions,
                # Only a stream begins with a part of its usage.
                cut=response.get("stop_reason", "") is None,
                bust=ours.step.bust and not full.step.bust and not call.compactions,
                sent_at=call.at,
                entries=full.entries,
                sent_entries=None if requests.ours is requests.full else ours.entries,
                paid=_paid(call.model, usage, response, call.request.seconds),
            )
            if bill.paid is not None:
                bill = self._priced(bill, full, ours, usage, call.model)
            billed = replace(usage, bill=bill)
            self._sum += Savings.of(billed)
            self._names.add(call.timeline.id)
        return billed

    def _priced(
        self, bill: Bill, full: _Simulation, ours: _Simulation, usage: UsageRecorded, model: Model
    ) -> Bill:
        """The bill with what the other request would have cost."""
        paid = bill.paid or 0.0
        sent, unsent = (full, ours) if self.record_only else (ours, full)
        read = _read_elsewhere(sent, unsent, usage.cache_read)
        real, other = with_read(sent.step, usage.cache_read), with_read(unsent.step, read)
        more = price(other, model, usage.output) - price(real, model, usage.output)
        return replace(
            bill,
            full=paid if self.record_only else paid + more,
            possible=-more if self.record_only else 0.0,
            uncached=price(CacheStep(uncached=full.step.total), model, usage.output),
            full_tokens=full.step.total,
            too_long=full.step.total > (model.input_tokens_max or model.tokens_window),
        )

    def _books(self, call: AgentCall, usage: UsageRecorded) -> _Books:
        """The books of a conversation; they go on from its last bill, also if that is another process's."""
        name, books = call.timeline.id, cast("_Books | None", call.conversation.books)
        head = self.store.head(name)
        if books is not None and books.model == call.model:
            is_new, later = False, lately_billed(self.store, name, books.seen.get(name, head), -inf)
        else:
            reading = _GatewayBlocks(frozenset() if self.record_only else self.reading)
            books = _Books(call.model, call.timeline.settings.counter, reading)
            call.conversation.books = books
            is_new, later = True, lately_billed(self.store, name, 0, inf)
        bills = [each.bill for each in later if each.bill and each.model == usage.model]
        bills = [bill for bill in bills if bill.sent_at not in self._sent]
        if is_new or bills:
            with self._lock:
                self._look(call.at - max(call.model.cache_ttls))
        entries = [e for bill in bills[-1:] for e in (*bill.entries, *(bill.sent_entries or ()))]
        books.sums |= {entry.prefix: entry.tokens for entry in entries}
        books.seen[name] = head
        self._sent.add(call.at)
        return books

    def _look(self, since: float) -> None:
        """Read the bills since a time, of all conversations."""
        for info in self.store.list():
            after = self._versions.get(info.id, 0)
            if info.version > after and info.updated_at >= since:
                for usage in lately_billed(self.store, info.id, after, since):
                    if usage.bill and usage.bill.sent_at not in self._sent:
                        bills = self._log_bills.setdefault(usage.bill.cache, [])
                        bills.append((info.id, usage.bill))
                self._versions[info.id] = info.version

    def _caches_of(self, call: AgentCall, account: str) -> _Caches:
        """The caches of an account and a model, with the entries of the bills that were found."""
        model = call.model
        who = _hash(account, model.provider, model.name)
        caches = self._caches.get(who)
        labels = [label for label in self._log_bills if label == _label(who, label)]
        if caches is None:
            own = [each.label for each in self._caches.values()]
            salted = [*labels, *self._log_bills, *own, token_hex(8)][0]  # one salt for a store
            label = _label(who, salted)
            caches = _Caches(label, PromptCache.of(model), PromptCache.of(model))
            self._caches[who] = caches
        for name, bill in chain.from_iterable(self._log_bills.pop(label) for label in labels):
            caches.remember(name, bill)
        return caches


def _label(who: str, like: str) -> str:
    """The name of a cache in bills, with the salt of another name: it tells nobody the account."""
    salt = like.partition(".")[0]
    return f"{salt}.{_hash(salt, who)[:16]}"
