"""What one can do to a timeline: each operation once, as a flow.

`Timeline` and `AsyncTimeline` are bound to these (`bound`): the parameters and docstrings here are theirs.
What adds to what was said is in `_appends`, what removes in `_removing`, what may begin another timeline in
`_branching`; here is what decides, and what one can ask.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from blocks import (
    Block,
    CallId,
    MisuseError,
    Recorded,
)
from render import CompactionPlan, Context, Rendered, View, show
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
    """None: nobody is to be told what a render does."""
    preparation: Preparation = attrs.field(
        default=attrs.Factory(_preparation_of, takes_self=True), init=False
    )

    def render(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Turn the log into the next request; see `Rendered`.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
            VersionConflictError: other writers of this timeline were faster each time.
            SummaryFailedError: no summary could be had, and `Policy.on_failure` is "raise"; so may
                be what else a summariser raises.
        """
        context = self.settings.context(system, tools, self.engine.clock())
        if self.preparation.is_possible:
            yield from self.preparation.wait(context)
        rendered = yield from self._rendered(context, force=False)
        if self.preparation.is_possible:
            yield from self.preparation.start(context)
        return rendered

    def compact(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Compact now, whatever the policy says, and render.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
            VersionConflictError: other writers of this timeline were faster each time.
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
        """Write the summary in force anew, from what it stands for, by `summarizer` or the timeline's own;
        True: it is another one now.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
            SummaryFailedError: as from `render`.
            ForgottenError: what it stands for is gone.
        """
        return (
            yield from upgrade(
                self.engine, self.settings.context(system, tools, self.engine.clock()), summarizer
            )
        )

    def expand(self) -> Flow[int]:
        """Undo the newest compaction: all that it took out of the prompt is visible again.

        Raises:
            MisuseError: no compaction is in force.
            ForgottenError: what it folded is gone.
            VersionConflictError: other writers of this timeline were faster each time.
        """
        return (yield from expand(self.engine))

    def propose(self, *, system: System = None, tools: Tools = None) -> Flow[CompactionPlan]:
        """What a compaction would do now, as data; decides nothing.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
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
            VersionConflictError: the timeline has moved on since the plan was made.
            DataError: the plan is of another timeline, or proposes nothing.
            MisuseError: it is no plan, or the artifact store did not take what it moves there.
        """
        checked_struct(plan, CompactionPlan, "commit_plan()", "plan")
        return (
            yield from commit_plan(
                self.engine, plan, self.settings.context(system, tools, self.engine.clock())
            )
        )

    # Asking: these leave a timeline as it is.

    def open_calls(self) -> tuple[CallId, ...]:
        """Calls of the newest round that have no result yet, in order."""
        view = self.engine.view
        calls = view.groups[-1].open_calls if view.groups else ()
        return tuple(call_id for call_id in calls if view.unanswered(call_id))  # none came late

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path: visible, hidden or folded.

        Raises:
            UnknownPathError: nothing was ever appended there.
            ForgottenError: it is not among the events that are left.
            MisuseError: the path is no text.
        """
        checked_text(path, "read()", "path")
        return (yield from self.engine.read(path))

    def search(self, query: str, *, limit: int = 20) -> Flow[Sequence["Hit"]]:
        """The blocks that match a query, visible or not, best first; see `search_blocks`.

        Raises:
            MisuseError: the query is no text, or asks for nothing, or the limit is not positive.
        """
        checked_text(query, "search()", "query")
        checked_whole(limit, "search()", "limit", 1)
        from persistence import search_blocks

        store, name = self.engine.store, self.engine.id
        found: Sequence[Hit] = yield RunBlocking(lambda: search_blocks(store, query, name, limit))
        return found

    def events(self, *, after: int = 0) -> Flow[Sequence[Recorded]]:
        """The log, with versions, oldest first.

        Raises:
            MisuseError: `after` is no version.
            ForgottenError: some of it is gone; the message says what is left.
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
        """The events after a version, with their versions, oldest first, and then each that anybody appends,
        in this process or in another, as it comes; an iterator that ends when it or the timeline is closed.

        Args:
            after: The version to go on from.
            timeout: Seconds without an event after which it ends, too; None: it waits for ever.
            interval: Seconds between two looks at a store that cannot tell: at first, and at most. One that
                tells what other processes append is looked at ten times as rarely.

        Raises:
            MisuseError: `after` is no version, or the seconds are none.
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

    def at(self, version: int) -> Flow[View]:
        """The view as it was at a version.

        Raises:
            MisuseError: the log has no such version.
            ForgottenError: what it needs is gone.
        """
        checked_whole(version, "at()", "version")
        events: list[Recorded] = yield from self.engine.events()
        last = events[-1][0] if events else 0
        if not 0 <= version <= last:
            raise MisuseError(f"version {version} is not in 0..{last}")
        return (yield from self.engine.view_until(version, events, f"no view at {version}"))

    def render_at(
        self, version: int, *, system: System = None, tools: Tools = None
    ) -> Flow[Rendered]:
        """The request that the log renders to at a version; decides and records nothing.

        Raises:
            MisuseError: the log has no such version, or the system prompt or a tool's definition is none.
            ForgottenError: what it needs is gone.
        """
        view = yield from self.at(version)
        return show(view, self.settings.context(system, tools, self.engine.clock()))

    def snapshot(self) -> Flow[Shot]:
        """The timeline as it is now: whatever is appended later, the snapshot stays the same."""
        version = yield from self.engine.flush()
        return Shot(
            view=self.engine.view, version=version, settings=self.settings, at=self.engine.clock()
        )
