"""Finds summaries that a model was already paid for: in this timeline, or for equal content in another timeline of the
same store.

This timeline's summaries are in its log.  Those of others are found through the artifact store, which separates
tenants and records every search: an artifact whose content is a key (`shared_key`) names the log and the version of
the summary.  It does not contain the summary, which is removed together with its log.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from blocks import (
    AccessRefusedError,
    EventId,
    Provenance,
    Recorded,
    SummaryPrepared,
    SummaryRequested,
    artifact_id,
    label_of,
    version_in,
)
from render import Summary, open_view, shared_key, summary_key
from timeline._flow import Flow, RunBlocking
from timeline.engine._artifacts import ArtifactService
from timeline.summarizers._summarizer import (
    ExtractiveSummarizer,
    Summarizer,
    SummaryRequest,
    model_asked,
)

if TYPE_CHECKING:
    from timeline.engine._engine import Engine

log = logging.getLogger("foldline")

KEY_TYPE: Final = "application/vnd.foldline.summary-key"
"""The MIME type is not text, so that a key is never shown to a model."""


@attrs.frozen(kw_only=True)
class PaidSummaries:
    """Summaries that a model was paid for, by this timeline or another one."""

    summarizer: Summarizer = attrs.field(factory=ExtractiveSummarizer)
    artifact_service: ArtifactService | None = None
    """Access to the artifact store; without it nothing is externalized or shared."""

    def worth_keeping(self, request: SummaryRequest, summary: Summary) -> SummaryPrepared | None:
        """The event that keeps a model's answer; None: no model was called, or the summary is degraded."""
        model = _model(self, request)
        if not model or summary.degraded or summary.provenance is None:
            return None
        return SummaryPrepared(
            id=EventId(""),
            at=request.context.now,
            key=summary_key(request.plan, request.context, model),
            cut=request.plan.cut,
            summary=summary.summary,
            provenance=summary.provenance,
        )

    def prepared(self, request: SummaryRequest) -> Summary | None:
        """The summary in the log for exactly this range, model and context; None: there is none."""
        model = _model(self, request)
        if not model:
            return None
        key = summary_key(request.plan, request.context, model)
        for event in reversed(request.view.prepared):
            if event.key == key:
                return Summary(summary=event.summary, provenance=event.provenance)
        return None

    # Summaries of other timelines.

    def paid_elsewhere(self, request: SummaryRequest, engine: "Engine") -> Flow[Summary | None]:
        """The summary that another timeline has paid for, for equal content and the same requester; None: there is
        none."""
        key = self._shared_key(request)
        if not key:
            return None
        event: SummaryPrepared | None = yield RunBlocking(partial(self._found, key, engine))
        if event is None:
            return None
        source, paid = request.plan.source_hash, event.provenance
        reused = Provenance(source_hash=source, model=paid.model, prompt=paid.prompt, reused=True)
        known = msgspec.structs.replace(reused, stop_reason=paid.stop_reason)
        return Summary(summary=event.summary, provenance=known)

    def share(self, request: SummaryRequest, kept: SummaryPrepared, engine: "Engine") -> Flow[None]:
        """Make a summary that is now in the log available to other timelines."""
        key = self._shared_key(request)
        for version, event in reversed(engine.view.events_since_cut):
            if key and isinstance(event, SummaryPrepared) and event.key == kept.key:
                yield RunBlocking(partial(self._enter, key, version, event, engine))
                return

    def _shared_key(self, request: SummaryRequest) -> str:
        service, model = self.artifact_service, _model(self, request)
        if not model or service is None or service.opener is None:
            return ""
        return shared_key(request.plan, request.view, request.context, model, service.reading_as)

    def _found(self, key: str, engine: "Engine") -> SummaryPrepared | None:
        service = self.artifact_service
        try:
            if service is None or (store := service.store) is None:
                return None
            about = store.describe(artifact_id(key.encode()), service.reader)
            version = version_in(about.path)
            page: Sequence[Recorded] = engine.store.read(about.timeline, after=version - 1, limit=1)
            hidden = open_view(engine.store.load_window(about.timeline)).state.withheld
        except AccessRefusedError:  # no other timeline has it
            return None
        except Exception:  # an error must not stop the summary
            log.exception("whether a summary was paid for elsewhere cannot be found out")
            return None
        found = page[0][1] if page else None
        if hidden or not isinstance(found, SummaryPrepared) or found.key != about.about:
            return None  # the summary may quote hidden blocks
        return found

    def _enter(self, key: str, version: int, event: SummaryPrepared, engine: "Engine") -> None:
        from persistence import ArtifactDescription

        service = self.artifact_service
        try:
            if service and (store := service.store):
                about = ArtifactDescription(
                    timeline=engine.id,
                    tenant=service.reader.tenant,
                    expires_at=service.expires_at(),
                    mime=KEY_TYPE,
                    path=label_of(version),
                    about=event.key,
                )
                store.put(key.encode(), about)
        except Exception:  # the summary is used here, shared or not
            log.exception("a summary could not be shared; other timelines will ask for their own")


def _model(paid: PaidSummaries, request: SummaryRequest) -> str:
    return model_asked(paid.summarizer, request.context.model.name)


def with_request(event: SummaryPrepared) -> tuple[SummaryRequested | SummaryPrepared, ...]:
    """The event, behind a request without calls if the summary was not asked for here (see `SummaryRequested`)."""
    if not event.provenance.reused:
        return (event,)
    return SummaryRequested(id=EventId(""), at=event.at, calls=0), event
