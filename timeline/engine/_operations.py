"""What one can do to a timeline: each operation once, as a flow.

`Timeline` and `AsyncTimeline` are bound to these (`_shell.bound`): the parameters and docstrings here
are theirs.
"""

from functools import partial

import attrs

from render import (
    CompactionPlan,
    Context,
    Rendered,
)
from timeline.arguments._checks import (
    checked_struct,
)
from timeline.arguments._fixed import System, Tools
from timeline.engine._appends import Appending
from timeline.engine._flow import Flow
from timeline.engine._observers import Observers
from timeline.engine._plans import commit_plan, expand, propose
from timeline.engine._prepare_summary import Preparation
from timeline.engine._upgrade import upgrade
from timeline.summarizers._summarizer import Summarizer


def _preparation_of(operations: "Operations") -> Preparation:
    return Preparation(operations.engine)


@attrs.frozen(kw_only=True)
class Operations(Appending):
    """The operations of one timeline."""

    watch: Observers = attrs.field(factory=Observers)
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
        context = self._context(system, tools)
        yield from self.preparation.wait(context)
        rendered = yield from self._rendered(context, force=False)
        yield from self.preparation.start(context)
        return rendered

    def compact(self, *, system: System = None, tools: Tools = None) -> Flow[Rendered]:
        """Compact now, whatever the policy says, and render.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
            VersionConflictError: other writers of this timeline were faster each time.
            SummaryFailedError: as from `render`.
        """
        context = self._context(system, tools)
        yield from self.preparation.finish()
        return (yield from self._rendered(context, force=True))

    def _rendered(self, context: Context, *, force: bool) -> Flow[Rendered]:
        rendering = partial(self.engine.render, context, force=force)
        return (yield from self.watch.render(self.engine.id, context, rendering))

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
        """
        return (yield from upgrade(self.engine, self._context(system, tools), summarizer))

    def expand(self) -> Flow[int]:
        """Undo the newest compaction: all that it took out of the prompt is visible again.

        Raises:
            MisuseError: no compaction is in force.
            VersionConflictError: other writers of this timeline were faster each time.
        """
        return (yield from expand(self.engine))

    def propose(self, *, system: System = None, tools: Tools = None) -> Flow[CompactionPlan]:
        """What a compaction would do now, as data; decides nothing.

        Raises:
            MisuseError: the system prompt or a tool's definition is none.
        """
        return (yield from propose(self.engine, self._context(system, tools)))

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
        return (yield from commit_plan(self.engine, plan, self._context(system, tools)))
