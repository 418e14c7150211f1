"""What a timeline and its agent do, told to OpenTelemetry: spans to a tracer, measures to a meter.

    invoke_agent {name}
      foldline.render                  each step of it an event
        foldline.compact
          chat {model}                 the summary, if a model writes it
        foldline.append, .load, .read  the store
      chat {model}                     of Gemini: generate_content {model}
      execute_tool {name}

    gen_ai.client.operation.duration   seconds of each operation above that has a name of the conventions
    gen_ai.client.token.usage          tokens of each call of a model, by type
    foldline.compactions, foldline.tokens.folded, foldline.cost

Names that begin with `gen_ai`, `openai`, `error`, `server` or `session` are those of the package
`opentelemetry-semantic-conventions` (0.66b2; a test compares them); they are spelled out because the package is not needed
otherwise. What these conventions have no name for begins with `foldline`. Spans and measures have names, ids and counts,
never content.

Tracers, meters and their exporters are other people's code: what they raise is logged, and changes nothing.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import attrs

from blocks import (
    Event,
    MisuseError,
    Provenance,
    RangeCompacted,
    TimelineId,
    UsageRecorded,
)
from blocks.formats import count, obj, objs, string
from render import Json, View

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span as TracedSpan
    from opentelemetry.trace import Tracer

log = logging.getLogger("foldline")
Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]
Attributes: TypeAlias = dict[str, Any]
_OPERATION: Final = "gen_ai.operation.name"
_PROVIDER: Final = "gen_ai.provider.name"
_MODEL: Final = "gen_ai.request.model"
_ANSWERED_BY: Final = "gen_ai.response.model"
_ERROR: Final = "error.type"
_MEASURED: Final[tuple[str, ...]] = (
    *(_OPERATION, _PROVIDER, _MODEL, _ANSWERED_BY, _ERROR),
    *("server.address", "server.port", "gen_ai.tool.name", "gen_ai.agent.name"),
)
"""The attributes of a span that its measures have, too: those with few different values."""


# Spans.


@attrs.frozen
class SafeSpan:
    """A span of a tracer, or none; without one it does nothing."""

    _span: "TracedSpan | None" = None
    attributes: Attributes = attrs.field(factory=dict[str, Any])
    """Those of the span so far."""

    def set_attributes(self, attributes: Attributes) -> None:
        self.attributes.update(attributes)
        _attempt(self._span, "set_attributes", attributes)

    def add_event(self, name: str, attributes: Attributes) -> None:
        """Add an event, which happens now."""
        _attempt(self._span, "add_event", name, attributes)

    def fail(self, kind: str, message: str = "") -> None:
        """Mark the span as failed; `kind` is the class of the error, or a short name for it."""
        self.set_attributes({_ERROR: kind})
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            _attempt(self._span, "set_status", StatusCode.ERROR, message or None)


def _attempt(whom: object, method: str, *args: Any, **named: Any) -> Any:
    """What a method of a tracer, a meter, or what they made returns; None: it has raised something, or there is none."""
    if whom is None:
        return None
    try:
        return getattr(whom, method)(*args, **named)
    except Exception as error:  # noqa: BLE001 -- other people's code
        log.warning("OpenTelemetry: %s failed (%s); all else goes on", method, type(error).__name__)
        return None


@attrs.frozen(kw_only=True)
class Traces:
    """The spans and measures of one timeline; without a tracer and a meter there are none, and they cost nothing."""

    timeline: TimelineId | None = None
    provider: str = ""
    """The name in the conventions of the timeline's provider."""
    model: str = ""
    """The name of the timeline's model."""
    tracer: "Tracer | None" = None
    meter: "Meter | None" = None
    price: Callable[[UsageRecorded], float | None] = attrs.field(default=lambda _: None)
    """The dollars of a call; None: no price is known."""
    _instruments: Mapping[str, Any] = attrs.field(
        default=attrs.Factory(lambda self: _instruments(self.meter), takes_self=True), init=False
    )

    def __attrs_post_init__(self) -> None:
        for name, value in (("tracer", self.tracer), ("meter", self.meter)):
            if value is not None and find_spec("opentelemetry") is None:
                raise MisuseError(
                    f"{name}= needs the package opentelemetry-api: pip install 'foldline[opentelemetry]'"
                )

    @property
    def are_on(self) -> bool:
        """Whether there is a tracer or a meter."""
        return self.tracer is not None or self.meter is not None

    def span(
        self, name: str, attributes: Attributes | None = None, kind: Kind = "INTERNAL"
    ) -> AbstractContextManager[SafeSpan]:
        """A span, which is the current one until it ends; an exception inside it becomes its error. If its attributes
        name an operation of the conventions, its duration is measured."""
        if not self.are_on:
            return nullcontext(SafeSpan())
        return self._measured(name, attributes or {}, kind)

    @contextmanager
    def _measured(self, name: str, attributes: Attributes, kind: Kind) -> Generator[SafeSpan]:
        begin = perf_counter()
        with self._span(name, attributes, kind) as span:
            try:
                yield span
            except Exception as error:
                span.fail(type(error).__name__, str(error)[:500])
                raise
            finally:
                if self._instruments and _OPERATION in span.attributes:
                    about = {n: span.attributes[n] for n in _MEASURED if n in span.attributes}
                    self._measure(_DURATION, perf_counter() - begin, about)

    @contextmanager
    def _span(self, name: str, attributes: Attributes, kind: Kind) -> Generator[SafeSpan]:
        if self.tracer is None:
            yield SafeSpan(attributes=attributes)
            return
        from opentelemetry.context import attach, detach
        from opentelemetry.trace import SpanKind, set_span_in_context

        about = {
            "gen_ai.conversation.id": self.timeline,
            "session.id": self.timeline,  # some back ends group spans by this
            **attributes,
        }
        started: TracedSpan | None = _attempt(
            self.tracer, "start_span", name, kind=SpanKind[kind], attributes=about
        )
        token = None if started is None else attach(set_span_in_context(started))
        try:
            yield SafeSpan(started, about)
        finally:
            if token is not None:
                detach(token)
            _attempt(started, "end")

    def call(self, name: str, store: object, events: int = 0) -> AbstractContextManager[SafeSpan]:
        """The span of a call of a store with this number of events."""
        about = {"foldline.store": type(store).__name__, "foldline.events": events}
        return self.span(f"foldline.{name}", about)

    def chat(
        self, model: str, provider: str, more: Attributes | None = None
    ) -> AbstractContextManager[SafeSpan]:
        """The span of one call of a model; `provider` by its name in the conventions. Without a model, none was
        called."""
        if not model:
            return nullcontext(SafeSpan())
        operation = "generate_content" if provider.startswith("gcp.") else "chat"
        about = {_OPERATION: operation, _PROVIDER: provider, _MODEL: model, **(more or {})}
        return self.span(f"{operation} {model}", about, "CLIENT")

    @property
    def about(self) -> Attributes:
        """Whom the timeline asks: provider and model."""
        return {_PROVIDER: self.provider, _MODEL: self.model}

    # Measures.

    def committed(self, events: Iterable[Event]) -> None:
        """Measure what is in the log now: the tokens and the cost of answers, and compactions."""
        for event in events if self._instruments else ():
            match event:
                case UsageRecorded() if (
                    event.output or event.response
                ):  # it was answered, not only counted
                    about = self.about | ({_ANSWERED_BY: event.model} if event.model else {})
                    cost = _attempt(self, "price", event)
                    self._used(event.input, event.output, cost, about)
                case RangeCompacted():
                    about = self.about | {"foldline.trigger": event.trigger}
                    self._measure(_COMPACTIONS, 1, about)
                    freed = event.tokens_before - event.tokens_after
                    self._measure(_FOLDED, max(freed, 0), about)
                case _:
                    pass

    def summarized(self, spent: Provenance | None, provider: str) -> None:
        """Measure the calls for a summary."""
        if self._instruments and spent and spent.model and not spent.reused:
            about = {_PROVIDER: provider, _MODEL: spent.model, "foldline.purpose": "summary"}
            read, written = spent.input_tokens, spent.output_tokens
            self._used(read, written, spent.cost_usd or None, about)

    def _used(self, read: int, written: int, cost: float | None, about: Attributes) -> None:
        operation = "generate_content" if about[_PROVIDER].startswith("gcp.") else "chat"
        for kind, tokens in (("input", read), ("output", written)):
            more = {_OPERATION: operation, "gen_ai.token.type": kind}
            self._measure(_TOKENS, tokens, about | more)
        if cost is not None:
            self._measure(_COST, cost, about)

    def _measure(self, name: str, value: float, about: Attributes) -> None:
        method = "record" if name in _BUCKETS else "add"
        _attempt(self._instruments.get(name), method, value, about)


# Measures.

_DURATION: Final = "gen_ai.client.operation.duration"
_TOKENS: Final = "gen_ai.client.token.usage"
_COMPACTIONS: Final = "foldline.compactions"
_FOLDED: Final = "foldline.tokens.folded"
_COST: Final = "foldline.cost"
_INSTRUMENTS: Final = {
    _DURATION: ("s", "GenAI operation duration."),
    _TOKENS: ("{token}", "Number of input and output tokens used."),
    _COMPACTIONS: ("{compaction}", "Compactions that were committed."),
    _FOLDED: ("{token}", "Tokens by which they made prompts shorter."),
    _COST: ("{USD}", "Cost of answers and summaries, by the model's prices."),
}
"""By name: unit and description. Those with buckets are histograms, the others are counters."""
_BUCKETS: Final[Mapping[str, tuple[float, ...]]] = {
    _DURATION: tuple(0.01 * 2**n for n in range(14)),
    _TOKENS: tuple(4**n for n in range(14)),
}
"""As the conventions ask for them."""


def _instruments(meter: "Meter | None") -> Mapping[str, Any]:
    """The instruments of a meter by name; one that could not be made is None."""
    made = dict[str, Any]()
    for name, (unit, what) in _INSTRUMENTS.items() if meter is not None else ():
        options: dict[str, Any] = {"unit": unit, "description": what}
        if name in _BUCKETS:
            options["explicit_bucket_boundaries_advisory"] = _BUCKETS[name]
        kind = "histogram" if name in _BUCKETS else "counter"
        made[name] = _attempt(meter, f"create_{kind}", name, **options)
    return made


# Attributes.

_REQUEST_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "gen_ai.request.max_tokens": ("max_tokens", "max_output_tokens", "max_completion_tokens"),
    "gen_ai.request.temperature": ("temperature",),
    "gen_ai.request.top_p": ("top_p",),
    "gen_ai.request.top_k": ("top_k",),
    "gen_ai.request.seed": ("seed",),
    "gen_ai.request.frequency_penalty": ("frequency_penalty",),
    "gen_ai.request.presence_penalty": ("presence_penalty",),
    "gen_ai.request.stop_sequences": ("stop_sequences", "stop"),
    "gen_ai.request.choice.count": ("n", "candidate_count"),
    "openai.request.service_tier": ("service_tier",),
}
"""Attributes of a request, and the arguments of the clients that they are from."""
_API_TYPES: Final = {"openai.responses": "responses", "openai.chat": "chat_completions"}


def request_attributes(arguments: Json, api: str, *, is_streamed: bool) -> Attributes:
    """The attributes for the arguments of a client's call; `api` as in `Provider.name`."""
    config = arguments.get("config")
    options = arguments | (cast("Json", config) if isinstance(config, dict) else {})
    flat = {_snake(name): value for name, value in options.items()}
    attributes = {
        attribute: flat[name]
        for attribute, names in _REQUEST_FIELDS.items()
        for name in names
        if _is_plain(flat.get(name)) and (api in _API_TYPES or not attribute.startswith("openai"))
    }
    if api in _API_TYPES:
        attributes["openai.api.type"] = _API_TYPES[api]
    return attributes | ({"gen_ai.request.stream": True} if is_streamed else {})


def _is_plain(value: object) -> bool:
    """Whether a value can be an attribute."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in cast("Iterable[object]", value))
    return isinstance(value, str | int | float)


def _snake(name: str) -> str:
    """A name of Gemini's API, as the others write theirs."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def response_attributes(answer: Json, used: UsageRecorded | None, stop: str) -> Attributes:
    """The attributes for the JSON of a response, its usage, and why it stopped in the terms of the Messages API, for
    a response that has no reason of its own."""
    flat = {_snake(name): value for name, value in answer.items()}
    about: Attributes = {
        "gen_ai.response.id": string(flat.get("id", flat.get("response_id"))),
        "gen_ai.response.model": string(flat.get("model", flat.get("model_version"))),
        "gen_ai.response.finish_reasons": _reasons(flat) or [stop] * bool(stop),
        "gen_ai.usage.reasoning.output_tokens": _reasoning(flat),
        "openai.response.service_tier": string(flat.get("service_tier")),
        "openai.response.system_fingerprint": string(flat.get("system_fingerprint")),
    }
    if (
        "choices" not in flat and "output" not in flat
    ):  # the tier that Anthropic reports has another place
        about = {name: value for name, value in about.items() if not name.startswith("openai")}
    about = {name: value for name, value in about.items() if value}
    return about | (usage_attributes(used) if used else {})


def _reasons(answer: Json) -> list[str]:
    """Why each of the answers in a response ended, in the provider's own words."""
    reasons = [
        answer.get("stop_reason"),
        *(choice.get("finish_reason") for choice in objs(answer.get("choices"))),
        *(
            candidate.get("finishReason", candidate.get("finish_reason"))
            for candidate in objs(answer.get("candidates"))
        ),
    ]
    if "output" in answer:  # of Responses, which has no reason if nothing went wrong
        reasons.append(obj(answer.get("incomplete_details")).get("reason", answer.get("status")))
    return [*filter(None, (string(getattr(reason, "value", reason)) for reason in reasons))]


def _reasoning(answer: Json) -> int:
    """Tokens of the answer that were thoughts; 0: none, or the provider does not say."""
    usage, gemini = obj(answer.get("usage")), obj(answer.get("usage_metadata"))
    details = obj(usage.get("output_tokens_details", usage.get("completion_tokens_details")))
    thoughts = gemini.get("thoughtsTokenCount", gemini.get("thoughts_token_count"))
    return count(details.get("reasoning_tokens", thoughts))


def server_attributes(client: object) -> Attributes:
    """The attributes for the server that a client calls, if the client says which."""
    url = getattr(client, "base_url", None)
    host, port = getattr(url, "host", None), getattr(url, "port", None)
    if not isinstance(host, str):
        return {}
    return {"server.address": host} | ({"server.port": port} if isinstance(port, int) else {})


def compacted_attributes(view: View) -> Attributes:
    """The attributes of a span whose request begins with a summary; empty for other requests."""
    return {"foldline.compacted": True} if view.compacted else {}


def spent_attributes(spent: Provenance | None) -> Attributes:
    """The attributes for the cost of a summary."""
    if spent is None:
        return {}
    reasons = {"gen_ai.response.finish_reasons": [spent.stop_reason]} if spent.stop_reason else {}
    return {
        "gen_ai.usage.input_tokens": spent.input_tokens,
        "gen_ai.usage.cache_read.input_tokens": spent.cached_tokens,
        "gen_ai.usage.output_tokens": spent.output_tokens,
        **reasons,
    }


def usage_attributes(used: Any) -> Attributes:
    """The attributes for the tokens of a request, or of all requests of a run; input includes tokens of the cache."""
    return {
        "gen_ai.usage.input_tokens": used.input,
        "gen_ai.usage.cache_read.input_tokens": used.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": used.cache_write,
        "gen_ai.usage.output_tokens": used.output,
    }
