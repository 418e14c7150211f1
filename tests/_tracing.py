"""A real tracer whose spans stay in memory."""

import attrs
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


@attrs.define
class Watched:
    """A tracer, and the spans that have ended."""

    exporter: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    tracer: Tracer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("foldline")

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """Those whose name begins so, in the order in which they began."""
        ended = sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [span for span in ended if span.name.startswith(name)]

    def only(self, name: str) -> ReadableSpan:
        [span] = self.spans(name)
        return span

    def parents(self, span: ReadableSpan) -> list[str]:
        """The names of the spans that it is in, from the inside out."""
        by_id = {s.context.span_id: s for s in self.exporter.get_finished_spans() if s.context}
        found: list[str] = []
        while span.parent and span.parent.span_id in by_id:
            span = by_id[span.parent.span_id]
            found.append(span.name)
        return found


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})
