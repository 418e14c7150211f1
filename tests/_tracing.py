"""A real tracer and a real meter, whose spans and measures stay in memory; and broken ones."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


@attrs.define
class Watched:
    """A tracer and a meter, the spans that have ended, and what was measured."""

    exporter: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    tracer: Tracer = attrs.field(init=False)
    meter: Meter = attrs.field(init=False)
    _reader: InMemoryMetricReader = attrs.field(factory=InMemoryMetricReader, init=False)

    def __attrs_post_init__(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("foldline")
        meters = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)
        self.meter = meters.get_meter("foldline")

    def measures(self, name: str) -> list[tuple[dict[str, object], float]]:
        """The points of an instrument since it was made: attributes, and the sum."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), getattr(point, "sum", getattr(point, "value", 0)))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def measured(self) -> Iterator[dict[str, object]]:
        """The attributes of every point of every instrument."""
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        yield {metric.name: None, **dict(point.attributes or {})}

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


@attrs.define
class Broken:
    """Stands for a tracer, a meter, and all that they return; some of its calls raise."""

    raises: Callable[[int], bool]
    calls: int = 0

    def __getattr__(self, _: str) -> Any:
        return self._called

    def _called(self, *_: object, **__: object) -> "Broken":
        self.calls += 1
        if self.raises(self.calls):
            raise OSError("the exporter's disk is full")
        return self
