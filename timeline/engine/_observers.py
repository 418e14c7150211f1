"""Reporting to observers and tracers what a render did, once it is committed."""

from typing import Final

import attrs

from blocks import TimelineId
from render import Context, Rendered, View
from timeline._flow import CallHook, Flow
from timeline.engine._engine import Engine
from timeline.observe._steps import Observer, Step, StepKind, steps_of
from timeline.observe._traces import (
    Attributes,
    Span,
    Traces,
    compacted_attributes,
    provider_name,
)

_TOLD: Final = (
    *("tokens_before", "tokens_after", "tokens_freed"),
    *("blocks", "first", "last", "detail"),
)
"""The fields of a step that become attributes in a trace."""
_ENDS: Final[frozenset[StepKind]] = frozenset({"rehydrated", "rendered"})


@attrs.frozen(kw_only=True)
class Observers:
    """Reports what each render did, to observers and to the tracer."""

    observers: tuple[Observer, ...] = ()
    traces: Traces = attrs.field(factory=Traces)

    def render(self, engine: Engine, context: Context, *, force: bool) -> Flow[Rendered]:
        """Render, and report the steps."""
        with self.traces.span("foldline.render", _request(context)) as span:
            told = _Told(name=engine.id, context=context, watch=self, span=span)
            rendered = yield from engine.render(context, told.tell, force=force)
            span.set_attributes(_totals(rendered) | compacted_attributes(engine.view))
        return rendered


@attrs.define(kw_only=True)
class _Told:
    """Reports one render. Its result is reported once, however often it is repeated."""

    name: TimelineId
    context: Context
    watch: Observers
    span: Span
    _is_over: bool = attrs.field(default=False, init=False)

    def tell(self, before: View, rendered: Rendered) -> Flow[None]:
        """Report the steps to the tracer and the observers."""
        was_over, self._is_over = self._is_over, True
        for step in steps_of(self.name, before, rendered, self.context):
            if was_over and step.kind in _ENDS:
                continue
            self.span.add_event(f"foldline.{step.kind}", _attributes(step))
            for observer in self.watch.observers:
                yield CallHook(observer, step)


def _attributes(step: Step) -> dict[str, str | int]:
    return {f"foldline.{name}": getattr(step, name) for name in _TOLD}


def _request(context: Context) -> Attributes:
    return {
        "gen_ai.provider.name": provider_name(context.provider.name),
        "gen_ai.request.model": context.model.name,
    }


def _totals(rendered: Rendered) -> dict[str, str | int | bool]:
    return {
        "foldline.tokens": rendered.tokens,
        "foldline.limit": rendered.account.limit,
        "foldline.messages": len(rendered.messages),
        "foldline.cache_points": len(rendered.cache_points),
        "foldline.fits": rendered.fits,
    }
