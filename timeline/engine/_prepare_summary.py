"""Preparing a summary while the agent works, so that the compaction itself need not wait for a model.

Above a soft threshold (`Policy.prepare_ratio`), a plan is made and summarised in the background; the
answer becomes an event of its own (`SummaryPrepared`).  When the compaction is due, the answer is used if
its range is unchanged.  Appends in the meantime are allowed, and a restart finds the summary that was paid for.
"""

import logging
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import attrs

from blocks import BlockId, Event, EventId, SummaryPrepared, SummaryRequested
from render import Context, Summary, View, compaction_due
from timeline._flow import Await, Begin, Flow
from timeline.engine._compaction import further_calls, with_request
from timeline.engine._engine import Engine
from timeline.summarizers._summarizer import SummaryRequest

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

log = logging.getLogger("foldline")


_inside: ContextVar[bool] = ContextVar("preparing", default=False)
"""Set in the flow of a preparation and in whatever it starts, so that a preparation does not wait for itself."""


@attrs.define
class Preparation:
    """Prepares summaries in the background, at most one at a time."""

    engine: Engine
    is_possible: bool
    """Whether the summariser calls a model at all."""
    _work: "Future[None] | Task[None] | None" = attrs.field(default=None, init=False)
    _tried: int = attrs.field(default=-1, init=False)
    """Version of the compaction after which a preparation was last started."""

    def start(self, context: Context) -> Flow[None]:
        """Start a preparation if `prepare_ratio` is exceeded and none is running; at most once between two
        compactions, even if it fails."""
        view = self.engine.view
        newest = view.compaction.version if view.compaction else 0
        if self._tried == newest or (self._work and not self._work.done()):
            return
        request = self.engine.compactor.to_prepare(view, context)
        if request:
            self._tried = newest
            self._work = yield Begin(self._prepared(request))

    def _prepared(self, request: SummaryRequest) -> Flow[None]:
        """Call the summariser, and commit the answer unless blocks were hidden meanwhile."""
        _inside.set(True)
        engine, compactor = self.engine, self.engine.compactor
        try:
            summary = yield from compactor.paid_elsewhere(request, engine)
            if summary is None:
                summary = yield from self._asked(request)
            event = compactor.worth_keeping(request, summary)
            if event:
                fit = partial(_still_useful, withheld=request.view.state.withheld)
                yield from engine.current(engine.commit(*with_request(event), fit=fit))
                yield from compactor.share(request, event, engine)
        except Exception:
            log.warning("a summary could not be prepared; the compaction will ask", exc_info=True)

    def _asked(self, request: SummaryRequest) -> Flow[Summary]:
        """The summariser's answer; all calls for it are counted."""
        engine, compactor = self.engine, self.engine.compactor
        if compactor.is_counted:
            yield from self._count(1)
        try:
            summary = yield from compactor.asked(request, engine.view)
        except Exception as error:
            yield from self._count(further_calls(compactor.failed_call_cost(request, error)))
            raise
        yield from self._count(further_calls(summary.provenance))
        return summary

    def _count(self, calls: int) -> Flow[None]:
        if calls:
            now = self.engine.clock()
            event = SummaryRequested(id=EventId(""), at=now, calls=calls)
            yield from self.engine.current(self.engine.commit(event))

    def wait(self, context: Context) -> Flow[None]:
        """If a compaction is due now, wait for the preparation, so that the same summary is not paid for twice."""
        if self._work and not self._work.done() and compaction_due(self.engine.view, context):
            yield from self.finish()
            yield from self.engine.catch_up()

    def forget(self) -> None:
        """Forget the preparation, because the event loop that it ran in is closed."""
        self._work = None

    def finish(self) -> Flow[None]:
        """Wait until the preparation has ended."""
        if self._work and not self._work.done() and not _inside.get():
            yield Await(self._work)


def _still_useful(
    view: View, events: Sequence[Event], withheld: Collection[BlockId]
) -> Sequence[Event]:
    """The events, or none if blocks were hidden meanwhile or the same summary is in the log already."""
    known = {event.key for event in view.prepared}
    is_known = any(isinstance(e, SummaryPrepared) and e.key in known for e in events)
    return () if is_known or view.state.withheld != withheld else events
