"""The same timeline for asyncio: the same methods, with `await`."""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import attrs

from blocks import (
    Block,
    CallId,
    Envelope,
    Recorded,
    TimelineId,
    UsageRecorded,
    checked_calls,
)
from persistence import EventStore
from render import CompactionPlan, Rendered, View
from timeline._timeline import INTERRUPTED
from timeline.arguments._fixed import System, Tools
from timeline.arguments._given import Given, Output
from timeline.engine._engine import Engine
from timeline.engine._flow import Flow, RunBlocking, adrive
from timeline.engine._open import Opening
from timeline.engine._operations import Operations
from timeline.engine._prepare_summary import AsyncPreparation
from timeline.engine._queries import repr_of
from timeline.engine._settings import Options, Settings
from timeline.engine._snapshot import Snapshot
from timeline.summarizers._summarizer import Summarizer

if TYPE_CHECKING:
    from persistence import ArtifactStore, Hit, Requester

_T = TypeVar("_T")


def _new_lock() -> Any:
    from asyncio import Lock

    return Lock()


@checked_calls()
@attrs.define(kw_only=True, eq=False, repr=False)
class AsyncTimeline:
    """One conversation, for asyncio; see `Timeline`.

    Commits run in threads, summarisers and hooks may be coroutine functions, and calls queue in
    the order in which they were made. Open one with `await AsyncTimeline.open(...)`.
    """

    _operations: Operations = attrs.field(alias="operations")
    _owned: EventStore | None = attrs.field(default=None, alias="owned")
    _lock: Any = attrs.field(factory=_new_lock, init=False)
    _preparation: AsyncPreparation = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        engine, lock = (
            self._operations.engine,
            self._lock,
        )  # not self: who drops a timeline has dropped all
        self._preparation = AsyncPreparation(
            engine, lambda fact: _run(engine, lock, engine.commit(fact))
        )

    @classmethod
    async def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline, or begin it; see `Timeline.open`."""
        opening = Opening(name, options)
        try:
            await adrive(opening.flow())
        except BaseException:
            await adrive(_done(opening.give_up))
            raise
        return cls(operations=opening.operations, owned=opening.owned)

    async def _run(self, flow: Flow[_T]) -> _T:
        return await _run(self._operations.engine, self._lock, flow)

    def __repr__(self) -> str:
        return repr_of(self, self._operations)

    # Append.

    async def append(self, *blocks: Block, at: float | None = None) -> int:
        """See `Timeline.append`."""
        return await self._run(self._operations.append(*blocks, at=at))

    async def user(self, text: str, *parts: Given) -> int:
        """See `Timeline.user`."""
        return await self._run(self._operations.user(text, *parts))

    async def steer(self, text: str) -> int:
        """See `Timeline.steer`."""
        return await self._run(self._operations.steer(text))

    async def followup(self, text: str) -> int:
        """See `Timeline.followup`."""
        return await self._run(self._operations.followup(text))

    async def attach(self, name: str, part: Given, *, mime: str = "text/plain") -> int:
        """See `Timeline.attach`."""
        return await self._run(self._operations.attach(name, part, mime))

    async def record(self, response: object, rendered: Rendered | None = None) -> int:
        """See `Timeline.record`."""
        return await self._run(self._operations.record(response, rendered))

    async def tool_result(
        self,
        call_id: str,
        output: Output,
        *,
        is_error: bool = False,
        envelope: Envelope | None = None,
    ) -> int:
        """See `Timeline.tool_result`."""
        flow = self._operations.tool_result(call_id, output, envelope, is_error=is_error)
        return await self._run(flow)

    async def notice(self, text: str) -> int:
        """See `Timeline.notice`."""
        return await self._run(self._operations.notice(text))

    async def close_calls(self, text: str = INTERRUPTED) -> tuple[CallId, ...]:
        """See `Timeline.close_calls`."""
        return await self._run(self._operations.close_calls(text))

    async def learn(self, usage: UsageRecorded | None) -> int:
        """See `Timeline.learn`."""
        return await self._run(self._operations.learn(usage))

    async def note(self, text: str) -> int:
        """See `Timeline.note`."""
        return await self._run(self._operations.note(text))

    async def plan(self, text: str) -> int:
        """See `Timeline.plan`."""
        return await self._run(self._operations.plan(text))

    async def hide(self, *keys: str, replacement: str = "") -> int:
        """See `Timeline.hide`."""
        return await self._run(self._operations.hide(keys, replacement))

    async def restore(self, *keys: str) -> int:
        """See `Timeline.restore`."""
        return await self._run(self._operations.restore(keys))

    # Render.

    async def render(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """See `Timeline.render`."""
        context = self._operations.context(system, tools)
        await self._preparation.wait(context)
        rendered = await self._run(self._operations.render(context))
        self._preparation.start(context)
        return rendered

    async def compact(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """See `Timeline.compact`."""
        await self._preparation.finish()
        return await self._run(self._operations.compact(self._operations.context(system, tools)))

    async def upgrade_summary(
        self,
        *,
        summarizer: Summarizer | None = None,
        system: System = None,
        tools: Tools = None,
    ) -> bool:
        """See `Timeline.upgrade_summary`."""
        return await self._run(
            self._operations.upgrade(self._operations.context(system, tools), summarizer)
        )

    async def expand(self) -> int:
        """See `Timeline.expand`."""
        return await self._run(self._operations.expand())

    async def propose(self, *, system: System = None, tools: Tools = None) -> CompactionPlan:
        """See `Timeline.propose`."""
        return await self._run(self._operations.propose(self._operations.context(system, tools)))

    async def commit_plan(
        self, plan: CompactionPlan, *, system: System = None, tools: Tools = None
    ) -> int:
        """See `Timeline.commit_plan`."""
        return await self._run(
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
        """See `Timeline.artifacts`."""
        return self._operations.engine.artifact_service.store

    @property
    def requester(self) -> "Requester":
        """See `Timeline.requester`."""
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

    async def read(self, path: str) -> Block:
        """See `Timeline.read`."""
        return await self._run(self._operations.read(path))

    async def search(self, query: str, *, limit: int = 20) -> Sequence["Hit"]:
        """See `Timeline.search`."""
        return await self._run(self._operations.search(query, limit))

    async def events(self, *, after: int = 0) -> Sequence[Recorded]:
        """See `Timeline.events`."""
        return await self._run(self._operations.events(after))

    async def at(self, version: int) -> View:
        """See `Timeline.at`."""
        return await self._run(self._operations.at(version))

    async def render_at(
        self, version: int, *, system: System = None, tools: Tools = None
    ) -> Rendered:
        """See `Timeline.render_at`."""
        return await self._run(self._operations.show_at(version, system, tools))

    async def snapshot(self) -> "Snapshot[Awaitable[AsyncTimeline]]":
        """See `Timeline.snapshot`; forking the snapshot is to be awaited."""
        return Snapshot(shot=await self._run(self._operations.snapshot()), timeline=self)

    async def fork(self, name: str, *, at: int | None = None) -> "AsyncTimeline":
        """See `Timeline.fork`."""
        await self._run(self._operations.fork(name, at))
        engine = attrs.evolve(self._operations.engine, id=TimelineId(name))
        forked = type(self)(operations=attrs.evolve(self._operations, engine=engine))
        await forked._run(engine.load())  # noqa: SLF001 -- our own
        return forked

    async def flush(self) -> int:
        """See `Timeline.flush`."""
        return await self._run(self._operations.engine.flush())

    async def close(self) -> None:
        """See `Timeline.close`."""
        await self._preparation.finish()
        async with self._lock:
            engine = self._operations.engine
            if engine.closed:
                return
            try:
                await adrive(engine.close())
            finally:
                engine.closed = True  # also when it was cancelled
                if self._owned is not None:
                    await adrive(_done(self._owned.close))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _run(engine: Engine, lock: Any, flow: Flow[_T]) -> _T:
    return await adrive(engine.current(flow), lock)


def _done(work: Callable[[], None]) -> Flow[None]:
    yield RunBlocking(work)
