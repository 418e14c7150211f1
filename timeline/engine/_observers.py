"""Telling observers and tracers what a render did, once it is committed."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import attrs

from blocks import TimelineId
from render import Context, Rendered, View
from timeline._flow import CallHook, Flow
from timeline.engine._engine import Engine
from timeline.observe._steps import Observer, Span, Step, StepKind, Tracer, steps_of

_TOLD: Final = (
    *("tokens_before", "tokens_after", "tokens_freed"),
    *("blocks", "first", "last", "detail"),
)
"""What a tracer is told of a step."""
_ENDS: Final[frozenset[StepKind]] = frozenset({"rehydrated", "rendered"})


@attrs.frozen(kw_only=True)
class Observers:
    """Who is told what a render did."""

    observers: tuple[Observer, ...] = ()
    tracer: Tracer | None = None

    def render(self, engine: Engine, context: Context, *, force: bool) -> Flow[Rendered]:
        """A render that tells what it did."""
        with self._span() as span:
            told = _Told(name=engine.id, context=context, watch=self, span=span)
            rendered = yield from engine.render(context, told.tell, force=force)
            if span:
                span.set_attributes(_totals(engine.id, rendered))
        return rendered

    @contextmanager
    def _span(self) -> "Generator[Span | None]":
        """One span a render; it is not made current, as a render may end in another task."""
        span: Span | None = self.tracer.start_span("foldline.render") if self.tracer else None
        try:
            yield span
        except BaseException as error:
            if span:
                span.record_exception(error)
            raise
        finally:
            if span:
                span.end()


@attrs.define(kw_only=True)
class _Told:
    """What is told of one render: how it ended only once, however often it was made anew."""

    name: TimelineId
    context: Context
    watch: Observers
    span: Span | None
    _is_over: bool = attrs.field(default=False, init=False)

    def tell(self, before: View, rendered: Rendered) -> Flow[None]:
        """Tell whoever watches, step by step."""
        was_over, self._is_over = self._is_over, True
        for step in steps_of(self.name, before, rendered, self.context):
            if was_over and step.kind in _ENDS:
                continue
            if self.span:
                self.span.add_event(f"foldline.{step.kind}", _attributes(step))
            for observer in self.watch.observers:
                yield CallHook(observer, step)


def _attributes(step: Step) -> dict[str, str | int]:
    return {f"foldline.{name}": getattr(step, name) for name in _TOLD}


def _totals(name: TimelineId, rendered: Rendered) -> dict[str, str | int | bool]:
    return {
        "foldline.timeline": name,
        "foldline.tokens": rendered.tokens,
        "foldline.limit": rendered.account.limit,
        "foldline.messages": len(rendered.messages),
        "foldline.cache_points": len(rendered.cache_points),
        "foldline.fits": rendered.fits,
        "gen_ai.request.model": rendered.model,
    }
