"""The timeline: append to it, render it, reopen it later."""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import attrs

from blocks import Block, CallId, Envelope, Recorded, TimelineId, UsageRecorded, checked_calls
from persistence import EventStore
from render import CompactionPlan, Rendered, View
from timeline.arguments._fixed import System, Tools
from timeline.arguments._given import Given, Output
from timeline.engine._engine import Engine
from timeline.engine._flow import Flow, drive
from timeline.engine._open import Opening
from timeline.engine._operations import Operations
from timeline.engine._prepare_summary import Preparation
from timeline.engine._queries import repr_of
from timeline.engine._settings import Options, Settings
from timeline.engine._snapshot import Snapshot
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from persistence import ArtifactStore, Hit, Requester

_T = TypeVar("_T")

INTERRUPTED = "Interrupted: this call did not finish. It may have had a part of its effects."


@checked_calls()
@attrs.define(kw_only=True, eq=False, repr=False)
class Timeline:
    """One conversation: an append-only log, rendered into the next request.

    Safe under threads: every method takes the timeline's lock. Open one with `Timeline.open`.
    """

    _operations: Operations = attrs.field(alias="operations")
    _owned: EventStore | None = attrs.field(default=None, alias="owned")
    _lock: Any = attrs.field(factory=threading.RLock, init=False)
    _preparation: Preparation = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        engine, lock = (
            self._operations.engine,
            self._lock,
        )  # not self: who drops a timeline has dropped all
        self._preparation = Preparation(
            engine, lambda fact: _run(engine, lock, engine.commit(fact))
        )

    @classmethod
    def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline, or begin it; see `Options`.

        Raises:
            PolicyError: no policy of this name.
            MisuseError: the name or another option is none, or the file is no store.
            StoreLockedError: somebody else holds the file.
            DamagedStoreError: the file does not hold together.
        """
        opening = Opening(name, options)
        try:
            drive(opening.flow())
        except BaseException:
            opening.give_up()
            raise
        return cls(operations=opening.operations, owned=opening.owned)

    def _run(self, flow: Flow[_T]) -> _T:
        return _run(self._operations.engine, self._lock, flow)

    def __repr__(self) -> str:
        return repr_of(self, self._operations)

    # Append.

    def append(self, *blocks: Block, at: float | None = None) -> int:
        """Append blocks in one durable commit; return the new version."""
        return self._run(self._operations.append(*blocks, at=at))

    def user(self, text: str, *parts: Given) -> int:
        """What the user asks: opens a turn."""
        return self._run(self._operations.user(text, *parts))

    def steer(self, text: str) -> int:
        """What the user says while the agent works."""
        return self._run(self._operations.steer(text))

    def followup(self, text: str) -> int:
        """What the user said meanwhile, delivered when the agent is done."""
        return self._run(self._operations.followup(text))

    def attach(self, name: str, part: Given, *, mime: str = "text/plain") -> int:
        """A file that comes with the user's words."""
        return self._run(self._operations.attach(name, part, mime))

    def record(self, response: object, rendered: Rendered | None = None) -> int:
        """A model's response: blocks and usage, one commit; `rendered`: what it answers, or the newest."""
        return self._run(self._operations.record(response, rendered))

    def tool_result(
        self,
        call_id: str,
        output: Output,
        *,
        is_error: bool = False,
        envelope: Envelope | None = None,
    ) -> int:
        """What a tool returned for a call."""
        flow = self._operations.tool_result(call_id, output, envelope, is_error=is_error)
        return self._run(flow)

    def notice(self, text: str) -> int:
        """What the runtime tells the model, in the user's place but not in the user's name."""
        return self._run(self._operations.notice(text))

    def close_calls(self, text: str = INTERRUPTED) -> tuple[CallId, ...]:
        """Answer open calls that nobody is going to answer, after a crash say; what they were."""
        return self._run(self._operations.close_calls(text))

    def learn(self, usage: UsageRecorded | None) -> int:
        """Correct the estimate by what a provider counted; None: it did not say."""
        return self._run(self._operations.learn(usage))

    def note(self, text: str) -> int:
        """A durable note of the agent's: byte-exact through any number of compactions."""
        return self._run(self._operations.note(text))

    def plan(self, text: str) -> int:
        """The agent's current plan; replaces the one before."""
        return self._run(self._operations.plan(text))

    def hide(self, *keys: str, replacement: str = "") -> int:
        """Show a text instead of these blocks, named by path or id; the log keeps them."""
        return self._run(self._operations.hide(keys, replacement))

    def restore(self, *keys: str) -> int:
        """Show hidden blocks again."""
        return self._run(self._operations.restore(keys))

    # Render.

    def render(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """Turn the log into the next request; see `Rendered`."""
        context = self._operations.context(system, tools)
        self._preparation.wait(context)
        rendered = self._run(self._operations.render(context))
        self._preparation.start(context)
        return rendered

    def compact(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """Compact now, whatever the policy says, and render."""
        self._preparation.finish()
        return self._run(self._operations.compact(self._operations.context(system, tools)))

    def upgrade_summary(
        self,
        *,
        summarizer: Summarizer | None = None,
        system: System = None,
        tools: Tools = None,
    ) -> bool:
        """Write the summary in force anew, from what it stands for, by `summarizer` or the timeline's own;
        True: it is another one now."""
        return self._run(
            self._operations.upgrade(self._operations.context(system, tools), summarizer)
        )

    def expand(self) -> int:
        """Undo the newest compaction: all that it took out of the prompt is visible again."""
        return self._run(self._operations.expand())

    def propose(self, *, system: System = None, tools: Tools = None) -> CompactionPlan:
        """What a compaction would do now, as data; decides nothing."""
        return self._run(self._operations.propose(self._operations.context(system, tools)))

    def commit_plan(
        self, plan: CompactionPlan, *, system: System = None, tools: Tools = None
    ) -> int:
        """Carry out a plan that `propose` gave; committing it again changes nothing.

        Raises:
            VersionConflictError: the timeline has moved on since the plan was made.
            DataError: the plan is of another timeline, or proposes nothing.
        """
        return self._run(
            self._operations.commit_plan(plan, self._operations.context(system, tools))
        )

    # Look.

    @property
    def id(self) -> TimelineId:
        """Its name in the store."""
        return self._operations.engine.id

    @property
    def settings(self) -> Settings:
        """What it was opened with: model, policy, limit, counter."""
        return self._operations.settings

    @property
    def artifacts(self) -> "ArtifactStore | None":
        """Where large results go; None: there is no such place. Opened when first asked for."""
        return self._operations.engine.artifact_service.store

    @property
    def requester(self) -> "Requester":
        """In whose name artifacts are stored and read."""
        return self._operations.engine.artifact_service.reader

    @property
    def version(self) -> int:
        """Events that are durable."""
        return self._operations.engine.version

    @property
    def view(self) -> View:
        """The log as it stands, from the latest summary onward."""
        return self._operations.engine.view

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Tool calls that wait for a result."""
        return self._operations.open_calls()

    def read(self, path: str) -> Block:
        """The original block at a path: visible, hidden or folded.

        Raises:
            UnknownPathError: nothing was ever appended there.
        """
        return self._run(self._operations.read(path))

    def search(self, query: str, *, limit: int = 20) -> Sequence["Hit"]:
        """The blocks that match a query, visible or not, best first; see `search_blocks`."""
        return self._run(self._operations.search(query, limit))

    def events(self, *, after: int = 0) -> Sequence[Recorded]:
        """The log, with versions, oldest first."""
        return self._run(self._operations.events(after))

    def at(self, version: int) -> View:
        """The view as it was at a version."""
        return self._run(self._operations.at(version))

    def render_at(self, version: int, *, system: System = None, tools: Tools = None) -> Rendered:
        """The request that the log renders to at a version; decides and records nothing."""
        return self._run(self._operations.show_at(version, system, tools))

    def snapshot(self) -> "Snapshot[Timeline]":
        """The timeline as it is now: whatever is appended later, the snapshot stays the same."""
        return Snapshot(shot=self._run(self._operations.snapshot()), timeline=self)

    def fork(self, name: str, *, at: int | None = None) -> "Timeline":
        """A new timeline in the same store that begins as a copy of this one.

        Raises:
            TimelineExistsError: there is a timeline of this name.
        """
        self._run(self._operations.fork(name, at))
        engine = attrs.evolve(self._operations.engine, id=TimelineId(name))
        forked = type(self)(operations=attrs.evolve(self._operations, engine=engine))
        forked._run(engine.load())  # noqa: SLF001 -- our own
        return forked

    def flush(self) -> int:
        """Make what waits durable: the fact that the last request was handed out."""
        return self._run(self._operations.engine.flush())

    def close(self) -> None:
        """Flush, and close the store if `open` made it, whether the flush failed or not. Idempotent."""
        self._preparation.finish()
        with self._lock:
            engine = self._operations.engine
            if engine.closed:
                return
            try:
                drive(engine.close())
            finally:
                if self._owned is not None:
                    self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _run(engine: Engine, lock: Any, flow: Flow[_T]) -> _T:
    return drive(engine.current(flow), lock)
