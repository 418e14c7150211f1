"""The fake provider: takes requests, and gives answers or refusals; and the server that offers it on a loopback port.

Rules are checked first: a request that breaks one is refused, and uses up neither a fault nor an answer of the script.
Then come injected faults, one per request, and last the responder.  Tokens and the prompt cache are counted
separately for each model.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import count
from typing import Any, ClassVar, Final, Self

import attrs
from attrs.validators import gt, optional
from msgspec.structs import replace

from blocks import FoldlineError, MisuseError, in_words
from blocks.formats import SHAPES
from render import Json, Model, provider_of
from timeline._models import known_models, model_named
from timeline._serving import AppServer
from timeline.billing import (
    CacheStep,
    FlatBlock,
    Flattener,
    PromptCache,
    company_of,
    whole_prompt_ttl,
)
from timeline.fake_provider._reply import ApiError, Drafts, Fault, Reply, drafts_of
from timeline.fake_provider._reply import answer as answered
from timeline.fake_provider._responder import Responder, as_responder, tutorial_responder
from timeline.fake_provider.wires import MESSAGES, WIRES, Outgoing, Purpose, Wire
from timeline.fake_provider.wires._wire import child, prompt_of
from timeline.tokens import ModelCounter

_SECONDS = {"5m": 300, "1h": 3_600}
_SHAPE: Final = SHAPES["anthropic"]
_LOST: Final = Reply(text="Nobody will ever read all of this sentence.")
"""The reply in a damaged answer. The script is not called, so that a retry gets its next reply."""


@attrs.frozen(kw_only=True)
class Exchange:
    """One request and its result."""

    request: Json = attrs.field(repr=False)
    error: ApiError | None = None
    fault: Fault | None = None
    """The injected fault; an error without a fault is due to the request itself."""
    message: Json | None = attrs.field(default=None, repr=False)
    """The complete answer, whatever was damaged on its way."""
    answer: Drafts | None = attrs.field(default=None, repr=False)
    """The same answer before it was put into the form of its API."""
    step: CacheStep | None = None
    """The billing of the request."""
    delay_seconds: float = 0.0
    tokens: int = 0
    """Tokens of the prompt; 0 if it was not counted."""


@attrs.define(kw_only=True)
class HttpRequest:
    """One HTTP request as it was sent, to any path, whether refused or not."""

    method: str
    path: str
    query: str
    """The query as it was written, without the value of `key`."""
    headers: Mapping[str, str]
    """Names in lower case; the values of headers that contain a key are removed."""
    pieces: list[bytes] = attrs.field(factory=list[bytes], repr=False)
    """The pieces of the body as they arrived."""
    status: int = 0
    """The status of the response; 0: none yet."""

    @property
    def body(self) -> bytes:
        """The body as it was sent, compressed or not."""
        return b"".join(self.pieces)

    @property
    def json(self) -> Any:
        """The parsed JSON of the decompressed body.

        Raises:
            ValueError: the body is not valid JSON.
        """
        from timeline.fake_provider._app import unpacked

        plain = unpacked(self.body, self.headers.get("content-encoding", ""))
        if not isinstance(plain, bytes):
            raise ValueError(plain.message)  # noqa: TRY004 -- the body's value is wrong
        return json.loads(plain)


@attrs.define
class PromptMeter:
    """Counts the tokens of prompts, and simulates the provider's cache."""

    counter: ModelCounter
    _flattener: Flattener
    cache: PromptCache

    @classmethod
    def of(cls, model: Model, factor: float) -> Self:
        """A meter for a model; `factor` is the number of the provider's tokens for each token of our own counter."""
        counter = ModelCounter(attrs.evolve(model, token_factor=model.token_factor * factor))
        cache = PromptCache.of(model)
        return cls(counter, Flattener(counter, provider_of(model)), cache)

    def flat(self, request: Json) -> list[FlatBlock]:
        """The blocks of a request in the order of the cache; their tokens add up to those of the prompt."""
        if "system" in request:
            request = {**request, "system": prompt_of(request)}
        flat = self._flattener.sent(request)
        if request.get("tools"):  # the provider's own text about tools comes first
            overhead = self.counter.model.tool_overhead_tokens
            flat[0] = flat[0]._replace(tokens=flat[0].tokens + overhead)
        control = request.get(_SHAPE.mark)
        if control:  # automatic caching marks the last block that takes a mark
            seconds = _SECONDS[control.get("ttl") or "5m"]
            last = max(i for i, block in enumerate(flat) if block.kind not in _SHAPE.thinking)
            flat[last] = flat[last]._replace(ttl=seconds)
        return flat


@attrs.define(kw_only=True)
class FakeProvider:
    """A provider that validates, counts, caches and signs in any of its APIs, and can inject faults."""

    responder: Responder = attrs.field(default=tutorial_responder, converter=as_responder)
    """The function that answers; a list of replies and faults is played in order."""
    window: int | None = attrs.field(default=None, validator=optional(gt(0)))
    """Tokens that prompt and answer may have together, for every model; None: the model's own window."""
    models: tuple[Model, ...] = ()
    """Models that are served in addition to those of the table."""
    factor: float = attrs.field(default=1.0, validator=gt(0))
    """Number of tokens that this provider counts for each token of the library's own counter."""
    clock: Callable[[], float] = time.time
    listener: Callable[[Exchange], None] | None = None
    """A function that is called with every exchange."""

    exchanges: list[Exchange] = attrs.field(init=False, factory=list[Exchange])
    http_requests: list[HttpRequest] = attrs.field(init=False, factory=list[HttpRequest])
    """All requests to a server of this provider."""
    failures: list[Exception] = attrs.field(init=False, factory=list[Exception])
    """The exceptions that the responder raised."""
    _faults: deque[Fault] = attrs.field(init=False, factory=deque[Fault])
    _meters: dict[tuple[str, str], PromptMeter] = attrs.field(
        init=False, factory=dict[tuple[str, str], PromptMeter]
    )
    _numbers: "count[int]" = attrs.field(init=False, factory=lambda: count(1))
    _times: Counter[str] = attrs.field(init=False, factory=Counter[str])
    """How often each request was answered, by its hash."""

    def fault(self, *faults: Fault) -> None:
        """Inject faults into the answers to the next valid requests, one each."""
        self._faults.extend(faults)

    @property
    def faults_left(self) -> int:
        """The number of faults that wait for a request."""
        return len(self._faults)

    def new_id(self, kind: str) -> str:
        """A numbered id in the provider's form."""
        return f"{kind}_fake{next(self._numbers):06}"

    def _ids_of(self, request: Json) -> Callable[[str], str]:
        """Makes the ids in the answer to a request, from the request: another process repeats no id in a conversation."""
        digest = sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        self._times[digest] += 1
        own, numbers = f"{digest[:8]}{self._times[digest]:02}", count(1)
        return lambda kind: f"{kind}_fake{own}{next(numbers):02}"

    # Models.

    def known(self, whose: str = MESSAGES.provider) -> list[Model]:
        """The models of the company that has the API `whose`, with the window that they have here."""
        models = (*self.models, *known_models())
        return [self._here(m) for m in models if company_of(m.provider) == company_of(whose)]

    def model(self, name: str) -> Model | None:
        """The model with this name or alias; None: it is not served."""
        for own in self.models:
            if name in (own.name, *own.aliases):
                return self._here(own)
        by_name = model_named(name)
        is_served = company_of(by_name.provider) in {company_of(wire.provider) for wire in WIRES}
        return self._here(by_name) if by_name.known and is_served else None

    def _here(self, model: Model) -> Model:
        if self.window is None:
            return model
        return attrs.evolve(model, tokens_window=self.window, input_tokens_max=0)

    # Requests.

    def create(self, request: Json, wire: Wire = MESSAGES) -> Exchange:
        """Answer a request for a message."""
        exchange = self._create(request, wire)
        self.exchanges.append(exchange)
        if self.listener:
            self.listener(exchange)
        return exchange

    def count(self, request: Json, wire: Wire = MESSAGES) -> ApiError | int:
        """The number of tokens of a prompt, or the reason why it would be refused."""
        model = self._checked(request, wire, "count")
        if isinstance(model, ApiError):
            return model
        return sum(block.tokens for block in self._meter(model).flat(request))

    def _create(self, request: Json, wire: Wire) -> Exchange:
        model = self._checked(request, wire, "answer")
        if isinstance(model, ApiError):
            return Exchange(request=request, error=model)
        meter = self._meter(model)
        flat = meter.flat(request)
        tokens = sum(block.tokens for block in flat)
        error = wire.length_error(tokens, request, model)
        if error:
            return Exchange(request=request, error=error, tokens=tokens)
        fault = self._faults.popleft() if self._faults else None
        reply, fault = self._reply(request, fault, wire)
        if fault and fault.error and (fault.damage == "none" or not request.get("stream")):
            return Exchange(request=request, error=fault.error, fault=fault, tokens=tokens)
        step = meter.cache.step(self.clock(), flat, whole_prompt_ttl(request, model))
        new_id = self._ids_of(request)
        calls = [c if c.id else replace(c, id=new_id(wire.ids[1])) for c in reply.calls]
        answer = self._answer(attrs.evolve(reply, calls=calls), request, model, wire, tokens)
        outgoing = Outgoing(
            id=new_id(wire.ids[0]),
            request=request,
            model=model,
            answer=answer,
            step=step,
            created=int(self.clock()),
            new_id=new_id,
        )
        late = fault.delay_seconds if fault else None
        return Exchange(
            request=request,
            fault=fault,
            message=wire.message(outgoing),
            answer=answer,
            step=step,
            delay_seconds=reply.delay_seconds if late is None else late,
            tokens=tokens,
        )

    def _checked(self, request: Json, wire: Wire, purpose: Purpose) -> Model | ApiError:
        """The model of a request, or the error of an invalid request."""
        error = wire.shape_error(request, purpose)
        if error:
            return error
        name = request["model"]
        model = self.model(name) if isinstance(name, str) else None
        if model is None or company_of(model.provider) != company_of(wire.provider):
            return ApiError(404, "not_found_error", f"model: {name}")
        model = attrs.evolve(model, provider=wire.provider)
        return wire.rule_error(request, model) or model

    def _meter(self, model: Model) -> PromptMeter:
        key = (model.provider, model.name)
        if key not in self._meters:
            self._meters[key] = PromptMeter.of(model, self.factor)
        return self._meters[key]

    def _reply(self, request: Json, fault: Fault | None, wire: Wire) -> tuple[Reply, Fault | None]:
        """The model's reply and the fault in it; faults may also come from the script."""
        if (own := wire.own_reply(request)) is not None:
            return own, fault
        while fault is None or not fault.is_final:
            reply = self._ask(request)
            if isinstance(reply, Reply):
                return reply, fault
            fault = reply
        return fault.reply or _LOST, fault

    def _ask(self, request: Json) -> Reply | Fault:
        try:
            return _checked(self.responder(request), self.responder)
        except Exception as error:
            self.failures.append(error)
            raise

    def _answer(self, reply: Reply, request: Json, model: Model, wire: Wire, tokens: int) -> Drafts:
        if reply.thinking and child(request, "thinking").get("display") == "omitted":
            reply = attrs.evolve(reply, thinking="")
        drafts = drafts_of(reply, lambda text: wire.sign(text, request, model))
        rooms = {
            "max_tokens": wire.output_asked(request) or model.output_tokens_max,
            "model_context_window_exceeded": model.tokens_window - tokens,
        }
        return answered(reply, list(drafts), rooms, self._meter(model).counter.count)


def _checked(reply: object, responder: Responder) -> Reply | Fault:
    if isinstance(reply, Reply | Fault):
        return reply
    name = getattr(responder, "__qualname__", in_words(responder))
    raise MisuseError(f"responder {name} must return a Reply or a Fault, not {in_words(reply)}")


@attrs.define
class FakeServer(AppServer):
    """Serves a provider between `start` and `stop`, or inside a `with` block; `url` is the `base_url` for a client."""

    extra: ClassVar[str] = "fake-provider"
    provider: FakeProvider = attrs.field(factory=FakeProvider)

    def make_app(self) -> Any:
        """See `AppServer`."""
        from timeline.fake_provider._app import app_of

        return app_of(self.provider)

    @property
    def requests(self) -> list[Json]:
        """All requests for a message, including refused ones."""
        return [exchange.request for exchange in self.provider.exchanges]

    @property
    def refused(self) -> list[Exchange]:
        """Requests that broke a rule of the provider, without those that a fault refused."""
        return [e for e in self.provider.exchanges if e.error and not e.fault]

    @property
    def http_requests(self) -> list[HttpRequest]:
        """All HTTP requests to any path, as they were sent but without keys."""
        return self.provider.http_requests

    def fault(self, *faults: Fault) -> None:
        """Inject faults into the answers to the next valid requests, one each."""
        self.provider.fault(*faults)

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        if not any(raised) and self.provider.failures:
            raise FoldlineError(
                "the responder of the fake provider raised an error, which is the cause of this one"
            ) from self.provider.failures[0]
