"""The state of one timeline and its flows; it uses no threads, no event loop and no clock of its own."""

from collections.abc import Callable, Generator, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias, cast

import attrs

from blocks import (
    Answered,
    Block,
    BlockAppended,
    DataError,
    Event,
    EventId,
    ForgottenError,
    MisuseError,
    RangeSummary,
    Recorded,
    Trigger,
    UnknownPathError,
    VersionConflictError,
    is_label,
    path_of,
    version_in,
    withheld_after,
)
from persistence import Kept, kept_of
from render import (
    BringBack,
    Compact,
    Context,
    Decided,
    Need,
    Rendered,
    Validator,
    View,
    compaction_due,
    handed_out,
    open_view,
    render,
    total_tokens,
    wanted,
)
from timeline._flow import Flow, RunBlocking
from timeline.arguments._blocks import checked_blocks
from timeline.arguments._checks import checked_time
from timeline.engine._artifacts import ArtifactService
from timeline.engine._attempt import Attempt, Made
from timeline.engine._compaction import Compactor
from timeline.engine._journal import Fit, Journal, as_they_are
from timeline.engine._retention import window_until
from timeline.engine._sharing import summary_in, without_hidden
from timeline.engine._withholding import withheld_as

PAGE = 2000
NEAR_KNOWN = 1000
"""Number of the newest blocks among whose paths similar ones to an unknown path are looked for."""


PASSES_MAX = 8
"""Times that one render is repeated because its hooks and observers have appended events. Events that they append
during the last pass are not in the request."""

Teller: TypeAlias = Callable[[View, Rendered], Flow[None]]
"""Tells observers about a request, given the view before its decisions."""


@attrs.define(kw_only=True, repr=False)
class Engine(Journal):
    """One timeline and its operations on blocks and requests."""

    clock: Callable[[], float]
    artifact_service: ArtifactService
    compactor: Compactor = attrs.field(factory=Compactor)
    _validator: Validator | None = attrs.field(default=None, init=False)

    # Appending.

    def append(
        self,
        blocks: Sequence[Block],
        *facts: Event,
        at: float | None = None,
        fit: Fit = as_they_are,
        answers: Answered | None = None,
    ) -> Flow[int]:
        """Append blocks and further facts in one commit; `answers` is the request that the blocks answer."""
        events = self.appended(blocks, *facts, at=at, answers=answers)
        events = yield from self.sealing.sealed(events, self.view)
        try:
            return (yield from self.commit(*events, fit=fit))
        except (MisuseError, DataError):  # nothing was written
            yield from self.sealing.put_back(events)
            raise

    def append_sealed(self, events: Sequence[Event]) -> Flow[int]:
        """Append events directly after the view, with the content of confidential results in artifacts; return the
        new version.

        Raises:
            VersionConflictError: another writer was faster; see `repeated`.
        """
        sealed = yield from self.sealing.sealed(events, self.view)
        try:
            return (yield from self.append_here(sealed))
        except (MisuseError, DataError, VersionConflictError):  # nothing was written
            yield from self.sealing.put_back(sealed)
            raise

    def appended(
        self,
        blocks: Sequence[Block],
        *facts: Event,
        at: float | None = None,
        answers: Answered | None = None,
    ) -> list[Event]:
        """The events that append these blocks, followed by further facts."""
        if not blocks and not facts:
            raise MisuseError("nothing to append: give at least one block")
        now = checked_time(self.clock() if at is None else at)
        events = (
            BlockAppended(
                id=EventId(self.ids()), at=now, block=block, answers=None if index else answers
            )
            for index, block in enumerate(checked_blocks(blocks))
        )
        return [*events, *facts]

    # Rendering.

    def render(
        self, context: Context, tell: "Teller | None" = None, *, force: bool = False
    ) -> Flow[Rendered]:
        """Render: decide, commit the decisions, and return the request.

        If hooks or observers append events meanwhile, everything is decided again, so that the request contains them.
        """
        self.check_open()
        attempt, forced, passes = Attempt(journal=self, is_nested=self.away > 0), force, 0
        decisions: tuple[Event, ...] = ()
        while True:
            if passes:
                yield from self.catch_up()
            passes += 1
            made = yield from self.repeated(partial(self._settled, context, attempt, force=forced))
            version, rendered, forced = self.view.version, made.rendered, False
            decisions += rendered.decisions
            if rendered.decisions:
                yield from self.compactor.report(
                    rendered.decisions, made.tokens, rendered.tokens, attempt
                )
            if tell is not None and not attempt.is_nested:
                with attempt.away():
                    yield from tell(made.before, rendered)
            if self.view.version == version or passes == PASSES_MAX:
                break
        yield from self.hand_out(handed_out(rendered, context))
        if len(decisions) > len(rendered.decisions):
            return attrs.evolve(rendered, decisions=decisions)
        return rendered

    def _settled(self, context: Context, attempt: Attempt, *, force: bool) -> Flow["Made"]:
        """Decide and render, and commit the decisions."""
        before, version = self.view, self.version
        self._validator = self._validator or context.provider.validator()
        stages = render(before, context, self._validator)
        forced = force and attempt.is_first(before)
        decided = yield from self._driven(stages, context, attempt, force=forced)
        rendered = decided.rendered
        made = Made(before=before, tokens=decided.tokens, rendered=rendered)
        try:
            yield from self.settle(decided.view)
        except VersionConflictError:
            if attempt.is_overtaken() and (
                yield from self.settle_behind(decided.view.decisions, version)
            ):
                attempt.kept += decided.view.decisions
                attempt.made = attempt.made or made
            raise
        decisions = (*attempt.kept, *decided.view.decisions)
        attempt.kept.clear()
        # Pending events get their version only at the next commit, so they are not counted here.
        if (rendered.shown, rendered.decisions) != (self.version, decisions):
            rendered = attrs.evolve(rendered, shown=self.version, decisions=decisions)
        first = attempt.made or made
        return Made(before=first.before, tokens=first.tokens, rendered=rendered)

    def _driven(
        self,
        stages: Generator[Need, Any, Decided],
        context: Context,
        attempt: Attempt,
        *,
        force: bool,
    ) -> Flow[Decided]:
        """The result of the pipeline; this answers its requests for compactions and artifacts."""
        answer: object = None
        while True:
            try:
                need = stages.send(answer)
            except StopIteration as stop:
                return cast("Decided", stop.value)
            match need:
                case Compact(view):
                    trigger = "forced" if force else compaction_due(view, context)
                    answer = view
                    if trigger and context.policy.compacts:
                        answer = yield from self._compacted(view, context, attempt, trigger)
                case BringBack(view):
                    service, answer = self.artifact_service, ()
                    if service.opener and (named := wanted(view, context.policy)):
                        answer = yield from service.bring_back(view, context, named)

    def _compacted(
        self, view: View, context: Context, attempt: Attempt, trigger: Trigger
    ) -> Flow[View]:
        with self.traces.span("foldline.compact", {"foldline.trigger": trigger}) as span:
            after = yield from self.compactor.compact(view, context, attempt, trigger)
            if self.traces.are_on:
                sizes = {
                    "before": total_tokens(view, context),
                    "after": total_tokens(after, context),
                }
                span.set_attributes({f"foldline.tokens_{when}": n for when, n in sizes.items()})
        return after

    # Reading.

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path, whether it is visible, hidden or folded; a summary without quotations of what
        is hidden on request."""
        entry = self.view.find(path)
        if entry is not None and entry.path == path:
            return entry.opened or entry.source
        from persistence import block_at

        try:
            found: Block | None = yield RunBlocking(lambda: block_at(self.store, self.id, path))
        except ForgottenError:
            if (found := self._carried(path)) is None:
                raise
        if found is None:
            raise (yield from self.unknown(path))
        if isinstance(found, RangeSummary) and self.view.state.withheld:
            log = without_hidden((yield from self.events()))
            found = summary_in(log, found.id) or found
        return (yield from self.sealing.opened_block(found))

    def _carried(self, label: str) -> Block | None:
        """The block with this version label, if the newest compaction carried it; otherwise None."""
        head = self.view.compaction.head.entries if self.view.compaction else ()
        version = version_in(label) if is_label(label) else 0
        return next((e.source for e in head if version and e.version == version), None)

    def unknown(self, path: str) -> Flow[UnknownPathError]:
        """The error for a path that does not exist; it names similar paths."""
        view, entries = self.view, self.view.entries
        head = view.compaction.head.entries if view.compaction else ()
        first = entries[0].version if entries else self.version + 1
        page: Sequence[Recorded] = yield RunBlocking(
            partial(self._page, max(0, first - 1 - NEAR_KNOWN))
        )
        blocks = (event.block for _, event in page if isinstance(event, BlockAppended))
        folded = [path_of(block) for block in blocks if block.id not in view.state.withheld]
        shown = (entry.path for entry in (*head, *entries) if entry.original is None)
        known = dict.fromkeys([*folded, *shown])
        return UnknownPathError(path, get_close_matches(path, list(known)[-NEAR_KNOWN:], n=3))

    def kept(self) -> Flow[Kept]:
        """The information about which events of the log are still stored."""
        kept: Kept = yield RunBlocking(partial(kept_of, self.store, self.id))
        return kept

    def events(self, after: int = 0) -> Flow[list[Recorded]]:
        """All events of the log that are still stored, oldest first."""
        found: list[Recorded] = []
        oldest = max(after, (yield from self.kept()).forgotten)
        while True:
            start = found[-1][0] if found else oldest
            page: Sequence[Recorded] = yield RunBlocking(partial(self._page, start))
            if not page:
                return found
            found += page

    def view_until(self, last: int, log: Sequence[Recorded], what: str) -> Flow[View]:
        """The view as it was at a version, with decisions by which the same is hidden on request as now; `log` has all
        events that are still stored.

        Raises:
            ForgottenError: the view needs events that were forgotten; `what` names the operation for the message.
        """
        view = yield from self.view_as_it_was(last, log, what)
        until = [recorded for recorded in log if recorded[0] <= last]
        return withheld_as(view, until, withheld_after(log), self.clock())

    def view_as_it_was(self, last: int, log: Sequence[Recorded], what: str) -> Flow[View]:
        """The same, with what was hidden then.

        Raises:
            ForgottenError: as `view_until`.
        """
        kept = yield from self.kept()
        window = window_until(log, last, kept, self.id, what)
        return open_view(
            attrs.evolve(window, events=(yield from self.sealing.opened(window.events)))
        )

    def _page(self, after: int) -> Sequence[Recorded]:
        return self.store.read(self.id, after=after, limit=PAGE)
