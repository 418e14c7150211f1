"""The fake provider without its wires: requests in, answers or refusals out.

Rules come first: a request that breaks one is refused and uses up neither a fault nor an answer of
the script.  Then come the faults that were asked for, one a request, and last the responder.  Tokens are
counted, and what the prompt cache has of them, for each model apart.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, Self

import attrs
from attrs.validators import gt, optional

from render import Json, Model, provider_of
from timeline._models import known_models, model_named
from timeline.fake_provider._fault import ApiError, Fault
from timeline.fake_provider._reply import Answer, Draft, Reply, answer, drafts_of
from timeline.fake_provider._responder import Responder, as_responder, tutorial_responder
from timeline.fake_provider._rules import misshapen, too_long, unlawful
from timeline.fake_provider._signature import sign
from timeline.replay._cache import CacheStep, FlatBlock, PromptCache
from timeline.replay._flatten import Flattener
from timeline.tokens import ModelCounter

PROVIDER: Final = "anthropic"
"""Whose API it speaks."""
_SECONDS = {"5m": 300, "1h": 3_600}
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


@attrs.define
class Meter:
    """Remembers the prompts it has seen, as the provider's cache does."""

    counter: ModelCounter
    _flattener: Flattener
    _cache: PromptCache

    @classmethod
    def of(cls, model: Model, factor: float) -> Self:
        """A meter; `factor`: the provider's tokens for each that our own counter finds."""
        counted = attrs.evolve(model, token_factor=model.token_factor * factor)
        counter = ModelCounter(counted)
        cache = PromptCache.of(model)
        return cls(counter, Flattener(counter, provider_of(model)), cache)

    def flat(self, request: Json) -> list[FlatBlock]:
        """The blocks of a request in cache order; their tokens are those of the prompt."""
        flat = self._flattener.flatten(request)
        if request.get("tools"):  # what the provider itself says about tools comes first
            overhead = self.counter.model.tool_overhead_tokens
            flat[0] = flat[0]._replace(tokens=flat[0].tokens + overhead)
        control = request.get("cache_control")
        if control:  # automatic caching: a mark on the last block that takes one
            seconds = _SECONDS[control.get("ttl") or "5m"]
            last = max(i for i, block in enumerate(flat) if block.kind not in _UNMARKABLE)
            flat[last] = flat[last]._replace(ttl=seconds)
        return flat

    def bill(self, flat: Sequence[FlatBlock], at: float) -> Json:
        """The usage of an accepted request, all but its output; the cache remembers it."""
        step: CacheStep = self._cache.step(at, flat)
        written = {
            f"ephemeral_{ttl}_input_tokens": step.written.get(seconds, 0)
            for ttl, seconds in _SECONDS.items()
        }
        return {
            "input_tokens": step.uncached,
            "cache_creation_input_tokens": step.write,
            "cache_read_input_tokens": step.read,
            "cache_creation": written,
            "service_tier": "standard",
        }


_LOST: Final = Reply(text="Nobody will ever read all of this sentence.")
"""What a damaged answer says; the script is not asked, so that a retry gets its next answer."""


@attrs.frozen(kw_only=True)
class Exchange:
    """One request, and what came of it."""

    request: Json = attrs.field(repr=False)
    error: ApiError | None = None
    fault: Fault | None = None
    """What was made to go wrong; an error without one is the request's own."""
    message: Json | None = attrs.field(default=None, repr=False)
    """The answer, complete, whatever happened to it on its way."""
    drafts: tuple[Draft, ...] = attrs.field(default=(), repr=False)
    delay_seconds: float = 0.0
    tokens: int = 0
    """Of the prompt; 0 when it was not worth counting."""


@attrs.define(kw_only=True)
class FakeProvider:
    """A provider of the Messages API that validates, counts, caches, signs, and can misbehave."""

    responder: Responder = attrs.field(default=tutorial_responder, converter=as_responder)
    """Who answers; a list of replies and faults is played in order."""
    window: int | None = attrs.field(default=None, validator=optional(gt(0)))
    """Tokens that prompt and answer may have, for every model; default: the model's own."""
    models: tuple[Model, ...] = ()
    """Models to know besides those of the table."""
    factor: float = attrs.field(default=1.0, validator=gt(0))
    """Tokens found here for each that the library's own counter finds."""
    clock: Callable[[], float] = time.time
    listener: Callable[[Exchange], None] | None = None
    """Told of every exchange."""

    exchanges: list[Exchange] = attrs.field(init=False, factory=list[Exchange])
    failures: list[Exception] = attrs.field(init=False, factory=list[Exception])
    """What the responder raised."""
    _faults: deque[Fault] = attrs.field(init=False, factory=deque[Fault])
    _meters: dict[str, Meter] = attrs.field(init=False, factory=dict[str, Meter])
    _numbers: "count[int]" = attrs.field(init=False, factory=lambda: count(1))

    def fault(self, *faults: Fault) -> None:
        """Make the next valid requests go wrong, one fault each."""
        self._faults.extend(faults)

    @property
    def faults_left(self) -> int:
        """Faults that wait for a request."""
        return len(self._faults)

    def new_id(self, kind: str) -> str:
        """An id as the provider makes them, numbered."""
        return f"{kind}_fake{next(self._numbers):06}"

    # Models.

    def known(self) -> list[Model]:
        """Every model there is, with the window that it has here."""
        served = (model for model in known_models() if model.provider == PROVIDER)
        return [self._here(model) for model in (*self.models, *served)]

    def model(self, name: str) -> Model | None:
        """The model of this name or alias."""
        for own in self.models:
            if name in (own.name, *own.aliases):
                return self._here(own)
        found = model_named(name)
        return self._here(found) if found.known and found.provider == PROVIDER else None

    def _here(self, model: Model) -> Model:
        return attrs.evolve(model, tokens_window=self.window) if self.window else model

    # Requests.

    def create(self, request: Json) -> Exchange:
        """Answer a request for a message."""
        exchange = self._create(request)
        self.exchanges.append(exchange)
        if self.listener:
            self.listener(exchange)
        return exchange

    def count(self, request: Json) -> ApiError | int:
        """The prompt's tokens, or why it would be refused."""
        model = self._checked(request, ("messages", "model"))
        if isinstance(model, ApiError):
            return model
        return sum(block.tokens for block in self._meter(model).flat(request))

    def _create(self, request: Json) -> Exchange:
        model = self._checked(request, ("max_tokens", "messages", "model"))
        if isinstance(model, ApiError):
            return Exchange(request=request, error=model)
        meter = self._meter(model)
        flat = meter.flat(request)
        tokens = sum(block.tokens for block in flat)
        error = too_long(tokens, request["max_tokens"], model)
        if error:
            return Exchange(request=request, error=error, tokens=tokens)
        fault = self._faults.popleft() if self._faults else None
        said, fault = self._said(request, fault)
        if fault and fault.error and (fault.damage == "none" or not request.get("stream")):
            return Exchange(request=request, error=fault.error, fault=fault, tokens=tokens)
        usage = meter.bill(flat, self.clock())
        spoken = self._spoken(said, request, model, tokens)
        late = fault.delay_seconds if fault else None
        return Exchange(
            request=request,
            fault=fault,
            message=self._message(spoken, model, usage),
            drafts=spoken.drafts,
            delay_seconds=said.delay_seconds if late is None else late,
            tokens=tokens,
        )

    def _checked(self, request: Json, required: tuple[str, ...]) -> Model | ApiError:
        """The model that a request is for, or what is wrong with it."""
        error = misshapen(request, required)
        if error:
            return error
        model = self.model(request["model"])
        if model is None:
            return ApiError(404, "not_found_error", f"model: {request['model']}")
        return unlawful(request, model) or model

    def _meter(self, model: Model) -> Meter:
        if model.name not in self._meters:
            self._meters[model.name] = Meter.of(model, self.factor)
        return self._meters[model.name]

    def _said(self, request: Json, fault: Fault | None) -> tuple[Reply, Fault | None]:
        """What the model says, and what goes wrong with it; faults may come from the script."""
        if request["max_tokens"] == 0:  # only warms the cache
            return Reply(stop_reason="max_tokens"), fault
        while fault is None or not fault.is_final:
            said = self._ask(request)
            if isinstance(said, Reply):
                return said, fault
            fault = said
        return fault.reply or _LOST, fault

    def _ask(self, request: Json) -> Reply | Fault:
        try:
            return self.responder(request)
        except Exception as error:
            self.failures.append(error)
            raise

    def _spoken(self, said: Reply, request: Json, model: Model, tokens: int) -> Answer:
        drafts = drafts_of(said, lambda text: sign(text, request, model), self.new_id)
        rooms = {
            "max_tokens": request["max_tokens"],
            "model_context_window_exceeded": model.tokens_window - tokens,
        }
        return answer(said, list(drafts), rooms, self._meter(model).counter.count)

    def _message(self, spoken: Answer, model: Model, usage: Json) -> Json:
        refused = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": self.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": model.name,
            "content": [draft.block for draft in spoken.drafts],
            "stop_reason": spoken.stop_reason,
            "stop_sequence": None,
            "stop_details": refused if spoken.stop_reason == "refusal" else None,
            "usage": {**usage, "output_tokens": spoken.output_tokens},
        }
