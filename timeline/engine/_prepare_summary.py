"""Preparing a summary while the agent works, so that the compaction itself waits for no model.

Above a soft threshold (`Policy.prepare_ratio`) a plan is made and summarised in the background; the
answer becomes an event of its own (`SummaryPrepared`).  When the compaction is due it is used, if
its range is still what it was.  Appends meanwhile are legal, and a restart finds what was paid for.
"""

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import attrs

from blocks import Event, SummaryPrepared
from render import Context, Summary, compaction_due
from timeline.engine._engine import Engine
from timeline.summarizers._summarizer import SummaryRequest

if TYPE_CHECKING:
    from asyncio import Task

log = logging.getLogger("foldline")


_inside: ContextVar[bool] = ContextVar("preparing", default=False)
"""Set for a summariser that prepares, and for what it starts: it must not wait for itself."""


@contextmanager
def _preparing() -> Generator[None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


@attrs.define
class Preparation:
    """At most one summary on its way, for a sync timeline: in a thread."""

    engine: Engine
    commit: Callable[[Event], object]
    """Commits one fact, under the timeline's lock."""
    _thread: threading.Thread | None = attrs.field(default=None, init=False)
    _tried: int = attrs.field(default=-1, init=False)
    """Version of the compaction after which a preparation was last tried."""
    _starting: Any = attrs.field(factory=threading.Lock, init=False)

    def start(self, context: Context) -> None:
        """Begin, when the soft threshold is passed and nothing is on its way."""
        with self._starting:
            if self._thread and self._thread.is_alive():
                return
            request = next_request(self.engine, context, self._tried)
            if request:
                self._tried = generation(self.engine)
                self._thread = threading.Thread(target=self._work, args=(request,), daemon=True)
                self._thread.start()

    def _work(self, request: SummaryRequest) -> None:
        compactor = self.engine.compactor
        try:
            with _preparing():
                summary = compactor.patience.ask(compactor.summarizer, request)
            if event := fact_of(self.engine, request, summary):
                self.commit(event)
        except Exception:
            log.warning("a summary could not be prepared; the compaction will ask", exc_info=True)

    def wait(self, context: Context) -> None:
        """When a compaction is due now: let what is on its way arrive, rather than pay twice."""
        thread = self._thread
        waits = thread and thread.is_alive() and not _inside.get()
        if thread and waits and compaction_due(self.engine.view, context):
            thread.join()

    def finish(self) -> None:
        """Wait for what is on its way."""
        thread = self._thread
        if thread and not _inside.get():
            thread.join()


@attrs.define
class AsyncPreparation:
    """The same for asyncio: in a task."""

    engine: Engine
    commit: Callable[[Event], object]
    """Commits one fact, under the timeline's lock; returns an awaitable."""
    _task: "Task[None] | None" = attrs.field(default=None, init=False)
    _tried: int = attrs.field(default=-1, init=False)

    def start(self, context: Context) -> None:
        """See `Preparation.start`."""
        if self._task and not self._task.done():
            return
        request = next_request(self.engine, context, self._tried)
        if request:
            self._tried = generation(self.engine)
            from asyncio import get_running_loop

            self._task = get_running_loop().create_task(self._work(request))

    async def _work(self, request: SummaryRequest) -> None:
        compactor = self.engine.compactor
        try:
            with _preparing():
                summary = await compactor.patience.aask(compactor.summarizer, request)
            if event := fact_of(self.engine, request, summary):
                await self.commit(event)  # type: ignore[misc]
        except Exception:
            log.warning("a summary could not be prepared; the compaction will ask", exc_info=True)

    async def wait(self, context: Context) -> None:
        """See `Preparation.wait`."""
        waits = self._task and not self._task.done() and not _inside.get()
        if self._task and waits and compaction_due(self.engine.view, context):
            await _arrived(self._task)

    async def finish(self) -> None:
        """See `Preparation.finish`."""
        if self._task and not self._task.done() and not _inside.get():
            await _arrived(self._task)


async def _arrived(task: "Task[None]") -> None:
    """Wait for a task, whatever becomes of it; who waits may be cancelled, and the task goes on."""
    from asyncio import wait

    await wait([task])


def fact_of(engine: Engine, request: SummaryRequest, summary: Summary) -> SummaryPrepared | None:
    """The fact to commit; None: the summary may quote what somebody has hidden meanwhile."""
    if engine.view.state.withheld != request.view.state.withheld:
        return None
    return engine.compactor.worth_keeping(request, summary)


def generation(engine: Engine) -> int:
    """Tells apart the stretches between two compactions."""
    return engine.view.compaction.version if engine.view.compaction else 0


def next_request(engine: Engine, context: Context, tried: int) -> SummaryRequest | None:
    """What to prepare now; once between two compactions, whether it went well or not."""
    if tried == generation(engine):
        return None
    return engine.compactor.to_prepare(engine.view, context)
