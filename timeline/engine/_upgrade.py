"""Writing a summary anew: the one in force, from what it stands for, by whatever summariser."""

import attrs

from blocks import (
    BlocksHidden,
    BlocksRestored,
    Event,
    EventId,
    Recorded,
    SummaryReplaced,
    window_of,
)
from render import Context, Summary, View, compaction_event, fitted_at, fold, open_view
from timeline.engine._attempt import Attempt
from timeline.engine._engine import Engine
from timeline.engine._flow import Flow
from timeline.summarizers._summarizer import Summarizer, SummaryRequest


def upgrade(engine: Engine, context: Context, summarizer: Summarizer | None) -> Flow[bool]:
    """Write the summary in force anew, from its source; False: nothing came of it that is new."""
    compaction = engine.view.compaction
    if compaction is None:
        return False
    before = yield from _before(engine, compaction.version)
    context = attrs.evolve(context, now=compaction.event.at)  # what was warm then is left as it is
    found = fitted_at(before, context, compaction.event.trigger, compaction.event.cut)
    if found is None:
        return False
    request = SummaryRequest(plan=found.range, view=before, context=found.context)
    summary, paid = yield from _rewritten(engine, request, summarizer)
    if summary is None:
        return False
    written = compaction_event(before, found.range, summary, found.context)
    if written.summary == compaction.event.summary:
        return False
    event = SummaryReplaced(
        id=EventId(""),
        at=engine.clock(),
        compaction=compaction.version,
        summary=written.summary,
        provenance=summary.provenance,
    )
    yield from engine.commit(*paid, event)
    return True


def _rewritten(
    engine: Engine, request: SummaryRequest, summarizer: Summarizer | None
) -> Flow[tuple[Summary | None, list[Event]]]:
    """A summary that is not degraded, and the fact that it was paid for."""
    compactor, view = engine.compactor, engine.view
    if summarizer is not None:
        compactor = attrs.evolve(compactor, summarizer=summarizer)
    known = compactor.prepared(attrs.evolve(request, view=view))
    if known or compactor.is_spent(view, request.context):
        return known, []
    withheld = view.state.withheld
    summary = yield from compactor.summary(request, Attempt(journal=engine))
    if engine.view.state.withheld != withheld:  # it may quote what is hidden now
        return None, []
    paid = compactor.worth_keeping(request, summary)
    return None if summary.degraded else summary, [paid] if paid else []


def _before(engine: Engine, version: int) -> Flow[View]:
    """The view just before an event, but for what was hidden on request since, or restored."""
    log: list[Recorded] = yield from engine.events()
    before = open_view(window_of(log[: version - 1]))
    later = (recorded for recorded in log[version - 1 :] if _is_about_hides(recorded[1]))
    return attrs.evolve(fold(before, later), version=before.version)


def _is_about_hides(event: Event) -> bool:
    """Whether it changes what may be shown of blocks that somebody wants hidden."""
    if isinstance(event, BlocksHidden):
        return event.reason == "requested"
    return isinstance(event, BlocksRestored | SummaryReplaced)
