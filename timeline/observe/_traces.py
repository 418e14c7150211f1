"""Spans of what a timeline and its agent do, for OpenTelemetry.

    invoke_agent
      foldline.render                  each step of it an event
        foldline.compact
          chat {model}                 the summary, if a model writes it
        foldline.append, .load, .read  the store
      chat {model}
      execute_tool {name}

Names follow the conventions for generative AI, which are still in development (as of November 2026:
https://github.com/open-telemetry/semantic-conventions-genai, `docs/gen-ai`); the constants of the Python
package lag behind them, so ours are spelled out.  A span holds names, ids and counts, never content.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any, Final, Literal, Protocol, TypeAlias

import attrs

from blocks import MisuseError, Provenance, TimelineId
from render import View

Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]
Attributes: TypeAlias = dict[str, Any]
MESSAGE_MAX: Final = 500
"""Largest number of characters of an error's message in a span."""
_PROVIDERS: Final = {"gemini": "gcp.gemini"}
"""Providers that have another name in the conventions than ours."""


class Span(Protocol):
    """The part of an OpenTelemetry span that is used here."""

    def set_attributes(self, attributes: Any) -> None: ...
    def set_status(self, status: Any, description: str | None = None) -> None: ...
    def add_event(self, name: str, attributes: Any = None) -> None: ...


class Tracer(Protocol):
    """The part of an OpenTelemetry tracer that is used here: `opentelemetry.trace.get_tracer("foldline")` is one."""

    def start_as_current_span(self, name: str, *args: Any, **options: Any) -> Any:
        """Start a span, which is the current one until it ends."""
        ...


class _NoSpan:
    """The span if there is no tracer: it does nothing."""

    def set_attributes(self, *_: Any, **__: Any) -> None:
        pass

    set_status = add_event = set_attributes


NO_SPAN: Final[Span] = _NoSpan()


@attrs.frozen
class Traces:
    """The spans of one timeline; without a tracer there are none, and they cost nothing."""

    timeline: TimelineId | None = None
    tracer: Tracer | None = None

    def __attrs_post_init__(self) -> None:
        if self.tracer is not None and find_spec("opentelemetry") is None:
            raise MisuseError("tracer=: spans need the package opentelemetry-api; install it")

    @property
    def are_on(self) -> bool:
        """Whether there is a tracer."""
        return self.tracer is not None

    def span(
        self, name: str, attributes: Attributes | None = None, kind: Kind = "INTERNAL"
    ) -> AbstractContextManager[Span]:
        """A span, which is the current one until it ends; an exception inside it becomes its error."""
        if self.tracer is None:
            return nullcontext(NO_SPAN)
        return self._span(self.tracer, name, attributes or {}, kind)

    @contextmanager
    def _span(
        self, tracer: Tracer, name: str, attributes: Attributes, kind: Kind
    ) -> Generator[Span]:
        from opentelemetry.trace import SpanKind

        about = {
            "gen_ai.conversation.id": self.timeline,
            "session.id": self.timeline,  # some back ends group spans by this
            **attributes,
        }
        with tracer.start_as_current_span(
            name,
            kind=SpanKind[kind],
            attributes=about,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                failed(span, type(error).__name__, str(error)[:MESSAGE_MAX])
                raise

    def call(self, name: str, store: object, events: int = 0) -> AbstractContextManager[Span]:
        """The span of a call of a store with this number of events."""
        about = {"foldline.store": type(store).__name__, "foldline.events": events}
        return self.span(f"foldline.{name}", about)

    def chat(
        self, model: str, provider: str, asked: Attributes | None = None
    ) -> AbstractContextManager[Span]:
        """The span of one call of a model; `provider` as in `Provider.name`. Without a model, none was called."""
        if not model:
            return nullcontext(NO_SPAN)
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider_name(provider),
            "gen_ai.request.model": model,
            **(asked or {}),
        }
        return self.span(f"chat {model}", about, "CLIENT")


def failed(span: Span, kind: str, message: str = "") -> None:
    """Mark a span as failed; `kind` is the class of the error, or a short name for it."""
    from opentelemetry.trace import StatusCode

    span.set_attributes({"error.type": kind})
    span.set_status(StatusCode.ERROR, message or None)


def provider_name(name: str) -> str:
    """A provider's name in the conventions: `openai` for both of OpenAI's APIs."""
    company = name.partition(".")[0]
    return _PROVIDERS.get(company, company)


def compacted_attributes(view: View) -> Attributes:
    """The attributes of a span whose request begins with a summary; empty for other requests."""
    return {"gen_ai.conversation.compacted": True} if view.compacted else {}


def spent_attributes(spent: Provenance | None) -> Attributes:
    """The attributes for the cost of a summary."""
    if spent is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": spent.input_tokens,
        "gen_ai.usage.cache_read.input_tokens": spent.cached_tokens,
        "gen_ai.usage.output_tokens": spent.output_tokens,
    }


class Used(Protocol):
    """Tokens that were used."""

    @property
    def input(self) -> int:
        """Input tokens, including those read from the cache."""
        ...

    @property
    def cache_read(self) -> int: ...
    @property
    def cache_write(self) -> int: ...
    @property
    def output(self) -> int: ...


def usage_attributes(usage: Used | None) -> Attributes:
    """The attributes for the tokens of a request; its input includes tokens read from the cache."""
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
    }
