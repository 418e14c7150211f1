"""The operations of a timeline, each written once, as a flow.

The methods of `Timeline` and `AsyncTimeline` are bound to these (`bound`), with their parameters and docstrings.
Operations that append are in `_appends`, those that remove in `_removing`, those that may begin another timeline in
`_branching`. This module has those that decide and those that query.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from blocks import (
    Block,
    CallId,
    MisuseError,
    Recorded,
)
from render import Account, CompactionPlan, Context, Rendered, View, show
from timeline._flow import Flow, RunBlocking
from timeline.arguments._checks import (
    checked_interval,
    checked_struct,
    checked_text,
    checked_timeout,
    checked_whole,
)
from timeline.arguments._fixed import System, Tools
from timeline.engine._branching import Branching
from timeline.engine._counting import calibrate
from timeline.engine._following import FOLLOW_SECONDS, Following
from timeline.engine._observers import Observers
from timeline.engine._plans import commit_plan, expand, propose, upgrade
from timeline.engine._prepare_summary import Preparation
from timeline.engine._snapshot import Shot
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from persistence import Hit


def _preparation_of(operations: "Operations") -> Preparation:
    engine = operations.engine
    return Preparation(engine, is_possible=not engine.compactor.is_free)


@attrs.frozen(kw_only=True)
class Operations(Branching):
    """The operations of one timeline."""

    observers: Observers | None = None
    """Receive the steps of a render; None: there are none."""
    preparation: Preparation = attrs.field(
        default=attrs.Factory(_preparation_of, takes_self=True), init=False
    )

    def render(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Turn the log into the next request; see `Rendered`.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            VersionConflictError: other writers of this timeline were faster at every try.
            SummaryFailedError: the summariser failed, and `Policy.on_failure` is "raise"; other errors of
                the summariser may then come through, too.
        """
        context = self.settings.context(system, tools, self.engine.clock())
        if self.preparation.is_possible:
            yield from self.preparation.wait(context)
        rendered = yield from self._rendered(context, force=False)
        if self.preparation.is_possible:
            yield from self.preparation.start(context)
        return rendered

    def compact(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Compact now, even if the policy's triggers are not reached, and render.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            VersionConflictError: other writers of this timeline were faster at every try.
            SummaryFailedError: as from `render`.
        """
        context = self.settings.context(system, tools, self.engine.clock())
        if self.preparation.is_possible:
            yield from self.preparation.finish()
        return (yield from self._rendered(context, force=True))

    def _rendered(self, context: Context, *, force: bool) -> Flow[Rendered]:
        if self.observers is None:
            return (yield from self.engine.render(context, force=force))
        return (yield from self.observers.render(self.engine, context, force=force))

    def upgrade_summary(
        self,
        *,
        summarizer: Summarizer | None = None,
        system: System = None,
        tools: Tools = None,
    ) -> Flow[bool]:
        """Rewrite the current summary from the original blocks, with `summarizer` or the timeline's own; return
        whether it has changed.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
            SummaryFailedError: as from `render`.
            ForgottenError: the original blocks were forgotten.
        """
        return (
            yield from upgrade(
                self.engine, self.settings.context(system, tools, self.engine.clock()), summarizer
            )
        )

    def expand(self) -> Flow[int]:
        """Undo the newest compaction: all blocks that it removed from the prompt are visible again.

        Raises:
            MisuseError: there is no compaction to undo.
            ForgottenError: the folded blocks were forgotten.
            VersionConflictError: other writers of this timeline were faster at every try.
        """
        return (yield from expand(self.engine))

    def propose(self, *, system: System = None, tools: Tools = None) -> Flow[CompactionPlan]:
        """Return what a compaction would do now, as data; this changes nothing.

        Raises:
            MisuseError: the system prompt or a tool's definition is not valid.
        """
        return (
            yield from propose(
                self.engine, self.settings.context(system, tools, self.engine.clock())
            )
        )

    def commit_plan(
        self, plan: CompactionPlan, *, system: System = None, tools: Tools = None
    ) -> Flow[int]:
        """Carry out a plan that `propose` gave; committing it again changes nothing.

        Raises:
            VersionConflictError: events were appended since the plan was made.
            DataError: the plan is for another timeline, or proposes nothing.
            MisuseError: it is not a plan, or the artifact store refused the content to be moved.
        """
        checked_struct(plan, CompactionPlan, "commit_plan()", "plan")
        return (
            yield from commit_plan(
                self.engine, plan, self.settings.context(system, tools, self.engine.clock())
            )
        )

    def calibrate(self, *, system: System = None, tools: Tools = None) -> Flow[Account]:
        """Have the provider count the next request (`count_tokens` of `open`), and correct the estimate by
        this count; return the corrected account. Errors of `count_tokens` come through.

        Raises:
            MisuseError: there is no `count_tokens`, or it does not return a number of tokens; or the system
                prompt or a tool's definition is not valid.
        """
        context = self.settings.context(system, tools, self.engine.clock())
        return (yield from calibrate(self.engine, context, self.settings.count_tokens))

    # Queries: these leave the timeline unchanged.

    def open_calls(self) -> tuple[CallId, ...]:
        """Calls of the newest round that have no result yet, in order."""
        view = self.engine.view
        calls = view.groups[-1].open_calls if view.groups else ()
        return tuple(call_id for call_id in calls if view.unanswered(call_id))  # no late result

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path, whether it is visible, hidden or folded.

        Raises:
            UnknownPathError: no block was ever appended at this path.
            ForgottenError: its event was forgotten.
            MisuseError: the path is not a string.
        """
        checked_text(path, "read()", "path")
        return (yield from self.engine.read(path))

    def search(self, query: str, *, limit: int = 20, hidden: bool = False) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query, whether visible or folded, best first; with `hidden`, also those that are
        hidden on request. See `search_blocks`.

        Raises:
            MisuseError: the query is not a string or has no words, or the limit is not positive.
        """
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.engine.store, self.engine.id
        search = partial(search_blocks, store, query, name, limit, hidden=hidden)
        found: Sequence[Hit] = yield RunBlocking(search)
        return found

    def events(self, *, after: int = 0) -> Flow[Sequence[Recorded]]:
        """The log, with versions, oldest first.

        Raises:
            MisuseError: `after` is not a version.
            ForgottenError: some of these events were forgotten; the message says which are left.
        """
        checked_whole(after, "events()", "after")
        (yield from self.engine.kept()).refuse_forgotten(self.engine.id, after + 1)
        return (yield from self.engine.events(after))

    def follow(
        self,
        *,
        after: int = 0,
        timeout: float | None = None,
        interval: tuple[float, float] = FOLLOW_SECONDS,
    ) -> Flow[Following]:
        """Iterate over the events after a version, with their versions, oldest first, and then over each new event
        of any process as it is appended. The iterator ends when it or the timeline is closed.

        Args:
            after: The version after which to begin.
            timeout: Seconds without an event after which the iterator ends; None: it waits for ever.
            interval: Seconds between two polls of a store that sends no notifications: at first, and at most. A
                store that reports appends of other processes is polled ten times less often.

        Raises:
            MisuseError: `after` is not a version, or `timeout` or `interval` are not seconds.
        """
        checked_whole(after, "follow()", "after")
        self.engine.check_open()
        yield from ()
        return Following(
            journal=self.engine,
            version=after,
            timeout=checked_timeout(timeout, "follow()"),
            interval=checked_interval(interval, "follow()"),
        )

    def at(self, version: int, *, hidden: bool = False) -> Flow[View]:
        """The view as it was at a version, but with the same blocks hidden on request as now; with `hidden`, with those
        that were hidden then.

        Raises:
            MisuseError: the log has no such version.
            ForgottenError: events that it needs were forgotten.
        """
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.engine.events()
        last = events[-1][0] if events else 0
        if not 0 <= version <= last:
            raise MisuseError(f"version {version} is not in 0..{last}")
        read = self.engine.view_as_it_was if hidden else self.engine.view_until
        view = yield from read(version, events, f"no view at {version}")
        return attrs.evolve(view, version=version, decisions=())

    def render_at(
        self, version: int, *, system: System = None, tools: Tools = None, hidden: bool = False
    ) -> Flow[Rendered]:
        """Render the log as it was at a version; this decides and records nothing. What is hidden on request now is
        hidden in it, unless `hidden` asks for what was hidden then.

        Raises:
            MisuseError: the log has no such version, or the system prompt or a tool's definition is not valid.
            ForgottenError: events that it needs were forgotten.
        """
        view = yield from self.at(version, hidden=hidden)
        return show(view, self.settings.context(system, tools, self.engine.clock()))

    def snapshot(self) -> Flow[Shot]:
        """A snapshot of the timeline, which stays the same whatever is appended later."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )
