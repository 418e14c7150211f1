"""What the calls of a gateway cost, and what the same calls would have cost without it.

The amount paid is the provider's token count at the model's prices. The cost of sending everything is simulated,
with the client's own cache marks and at the same times. The simulation's token counts are corrected by the provider's
counts of the requests that were sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from threading import Lock
from typing import Any, Final, cast

import attrs
import msgspec

from blocks import UsageRecorded
from blocks.formats import count, obj
from render import Json, Model, provider_of
from timeline.gateway._rewriting import Call
from timeline.replay._cache import CacheStep, FlatBlock, PromptCache, kept_unasked
from timeline.replay._flatten import Flattener
from timeline.replay._price import price

SAME_SHARE: Final = 0.005
"""A difference smaller than this share of the cost of sending everything counts as none."""
SEEN_MAX: Final = 10_000
"""Number of content blocks per conversation that are kept for recognizing them."""
_MILLION: Final = 1_000_000
_HOUR: Final = 3_600
_OVERHEAD: Final = -1
"""A key that no block has."""
_MEMORY: Final = "money"


@attrs.frozen(kw_only=True)
class Savings:
    """The cost of the calls and what it would have been without the gateway, in dollars."""

    calls: int = 0
    """Requests that were rendered and answered."""
    passed: int = 0
    """Other requests, which were forwarded unchanged."""
    tokens: int = 0
    """Tokens of all prompts, as the provider counted them."""
    full_tokens: int = 0
    """Tokens of the same prompts if everything had been sent."""
    output_tokens: int = 0
    paid: float = 0.0
    """The amount paid for prompts and answers, by the provider's usage."""
    full: float = 0.0
    """The cost of the same calls with the whole history in each, and the client's own cache marks."""
    uncached: float = 0.0
    """The same without the provider's cache, whose savings are not due to the gateway."""
    would: float = 0.0
    """The cost of the rendered requests, if they had been sent; only with `record_only`."""
    busts: int = 0
    """Requests that lost a prefix that the provider had cached and would have read, not counting compactions."""
    compactions: int = 0
    timelines: int = 0
    guessed: bool = False
    """Whether the price of a model is not known."""
    record_only: bool = False

    @property
    def caching(self) -> float:
        """What the provider's own cache would save of the cost of sending everything."""
        return self.uncached - self.full

    @property
    def saved(self) -> float:
        """The savings compared with sending everything (with `record_only`, the possible savings); below 0: it cost
        more."""
        return self.full - (self.would if self.record_only else self.paid)

    def lines(self) -> tuple[str, ...]:
        """The savings in words."""
        about = "about " if self.guessed else ""
        if not self.calls:
            return (f"no calls to a model; {self.passed:,} other requests forwarded",)
        head = f"{self.calls:,} calls, {self.tokens:,} prompt tokens, paid {about}${self.paid:.4f}"
        word = "more" if self.caching >= 0 else "less"
        rest = (
            f"sending everything: {self.full_tokens:,} prompt tokens, {about}${self.full:.4f} with the client's"
            f" own cache marks (without the provider's cache it would be ${abs(self.caching):.4f} {word})"
        )
        verdict = (
            f"{self._verdict(about)}; compactions: {self.compactions:,}, cache busts without a compaction:"
            f" {self.busts:,}, timelines: {self.timelines:,}"
        )
        return head, rest, verdict

    def _verdict(self, about: str) -> str:
        share = self.saved / self.full if self.full else 0.0
        if abs(share) < SAME_SHARE:
            return (
                "nothing would have been saved"
                if self.record_only
                else "nothing saved, nothing lost"
            )
        if self.record_only:
            word = "would have saved" if share > 0 else "would have cost more:"
        else:
            word = "saved" if share > 0 else "foldline cost more than it saved:"
        return f"{word} {about}${abs(self.saved):.4f} ({abs(share):.0%})"


@attrs.define(eq=False)
class _Books:
    """The simulated bills of one conversation."""

    model: Model
    flattener: Flattener
    full: PromptCache
    sent: PromptCache | None = None
    """None: all that was sent is what came."""
    said: Sequence[bytes] = ()
    """The client's latest messages, and what the cache sees of each."""
    flat: Sequence[tuple[FlatBlock, ...]] = ()
    fixed: dict[str, tuple[bytes, tuple[FlatBlock, ...]]] = attrs.field(
        factory=dict[str, tuple[bytes, tuple[FlatBlock, ...]]]
    )
    """The same of system and tools."""

    @classmethod
    def of(cls, call: Call) -> "_Books":
        model, counter = call.model, cast("Any", call.timeline.settings.counter)
        flattener = Flattener(counter, provider_of(model), seen_max=SEEN_MAX)
        return cls(model, flattener, PromptCache.of(model))

    def given(self, call: Call) -> list[FlatBlock]:
        """The client's own request as the cache sees it."""
        return [*self._fixed(call), *chain.from_iterable(self._messages(call.asked.body.said))]

    def _messages(self, said: Sequence[bytes]) -> Sequence[tuple[FlatBlock, ...]]:
        """Of each message; what stands where it stood is not looked at again."""
        known = zip(self.said, self.flat, strict=True)
        flats = [
            flat if raw == old else self._made("said", raw)
            for raw, (old, flat) in zip(said, known, strict=False)
        ]
        flats += [self._made("said", raw) for raw in said[len(flats) :]]
        self.said, self.flat = said, flats
        return flats

    def ours(self, call: Call) -> list[FlatBlock]:
        """The request with what was rendered: all in front of the conversation is the client's own."""
        leads = chain.from_iterable(self._messages(call.asked.body.said)[: call.asked.body.leads])
        messages = self.flattener.flatten({"messages": call.rendered.messages})
        return [*self._fixed(call), *leads, *messages]

    def _fixed(self, call: Call) -> list[FlatBlock]:
        body = call.asked.body
        tools = self._flat("tools", body.fields.get("tools", b"[]"))
        system = self._system(call) if body.api.prompt else ()
        return [*self._overhead(tools), *tools, *system]

    def _overhead(self, tools: Sequence[object]) -> list[FlatBlock]:
        """What the provider puts before tools to explain them."""
        tokens = self.model.tool_overhead_tokens
        return [FlatBlock(_OVERHEAD, "", tokens)] if tools and tokens else []

    def _system(self, call: Call) -> Iterable[FlatBlock]:
        given = call.asked.body.system()
        if call.asked.body.api.provider != "anthropic":
            given = [{"role": "developer", "content": given}] if given else []
        return self._flat("system", msgspec.json.encode(given))

    def _flat(self, place: str, raw: bytes) -> tuple[FlatBlock, ...]:
        """Of system or tools, which are mostly those of the call before."""
        known, flat = self.fixed.get(place, (b"", ()))
        if known != raw:
            flat = self._made(place, raw)
            self.fixed[place] = raw, flat
        return flat

    def _made(self, place: str, raw: bytes) -> tuple[FlatBlock, ...]:
        found: Any = msgspec.json.decode(raw) or []
        request: dict[str, Sequence[Any]] = (
            {"messages": [found]} if place == "said" else {place: found}
        )
        return tuple(self.flattener.flatten(request))


@attrs.define(eq=False)
class Meter:
    """Adds up the costs of calls."""

    record_only: bool = False
    _sum: Savings = attrs.field(factory=Savings, init=False)
    _reported: int = attrs.field(default=0, init=False)
    _simulated: int = attrs.field(default=0, init=False)
    _names: set[str] = attrs.field(factory=set[str], init=False)
    _lock: Any = attrs.field(factory=Lock, init=False)

    def savings(self) -> Savings:
        """Everything so far."""
        with self._lock:
            factor = self._reported / self._simulated if self._simulated else 1.0
            found = self._sum
            return attrs.evolve(
                found,
                full_tokens=round(found.full_tokens * factor),
                full=found.full * factor,
                uncached=found.uncached * factor,
                would=found.would * factor,
                timelines=len(self._names),
                record_only=self.record_only,
            )

    def passed(self) -> None:
        """Count a request that was forwarded unchanged."""
        with self._lock:
            self._sum = attrs.evolve(self._sum, passed=self._sum.passed + 1)

    def answered(self, call: Call, usage: UsageRecorded | None, written: Mapping[int, int]) -> None:
        """Count an answered call; `written` has the tokens written to the cache, by the seconds for which they are
        kept."""
        memory = call.conversation.memory
        with call.conversation.lock:
            books: _Books | None = memory.get(_MEMORY)
            if books is None or books.model != call.model:
                books = memory[_MEMORY] = _Books.of(call)
            given = books.given(call)
            options = call.asked.body.value("prompt_cache_options")
            unasked = kept_unasked({"prompt_cache_options": options}, call.model)
            is_ours = call.is_rewritten or self.record_only
            if is_ours and books.sent is None:
                books.sent = deepcopy(books.full)
            sent = full = books.full.step(call.at, given, unasked)
            if books.sent and is_ours:
                own = 0 if call.rendered.cache_points else unasked
                sent = books.sent.step(call.at, books.ours(call), own)
            elif books.sent:
                sent = books.sent.step(call.at, given, unasked)
        self._add(call, usage, written, full, sent)

    def _add(
        self,
        call: Call,
        usage: UsageRecorded | None,
        written: Mapping[int, int],
        full: CacheStep,
        sent: CacheStep,
    ) -> None:
        model, real = call.model, full if self.record_only else sent
        output = usage.output if usage else 0
        rates = provider_of(model).rates(model, usage.input if usage else real.total)
        answer = output * rates.output / _MILLION
        if usage and usage.input:
            paid = rates.cost(usage.uncached, usage.cache_read, written) / _MILLION
            tokens = usage.input
        else:
            paid, tokens = price(real, model), real.total
        bare = CacheStep(uncached=full.total)
        with self._lock:
            before = self._sum
            self._reported += tokens
            self._simulated += real.total
            self._names.add(call.timeline.id)
            self._sum = attrs.evolve(
                before,
                calls=before.calls + 1,
                tokens=before.tokens + tokens,
                full_tokens=before.full_tokens + full.total,
                output_tokens=before.output_tokens + output,
                paid=before.paid + paid + answer,
                full=before.full + price(full, model) + answer,
                uncached=before.uncached + price(bare, model) + answer,
                would=before.would + price(sent, model) + answer,
                busts=before.busts + (sent.bust and not call.compactions),
                compactions=before.compactions + call.compactions,
                guessed=before.guessed or not model.known,
            )


def written_in(
    response: Json, usage: UsageRecorded | None, model: Model, seconds: int | None
) -> Mapping[int, int]:
    """The tokens written to the cache, by the seconds for which they are kept; `seconds` is the time for which the
    client's marks ask."""
    if usage is None or not usage.cache_write:
        return {}
    told = obj(obj(response.get("usage")).get("cache_creation"))
    hours = count(told.get("ephemeral_1h_input_tokens"))
    if told:
        short = usage.cache_write - hours
        return {ttl: n for ttl, n in ((300, short), (_HOUR, hours)) if n}
    return {seconds or min(model.cache_ttls): usage.cache_write}
