"""The timeline: append to it, render it, reopen it later; `Timeline`, and `AsyncTimeline` with `await`.

Both are shells over one list of operations (`Operations`): a shell runs the flow of an operation, and takes its
parameters and docstring from it (`bound`).
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
)

import attrs

import render
from blocks import (
    ArgumentError,
    CallId,
    MisuseError,
    TimelineId,
    UsageRecorded,
    checked_calls,
    formats,
    in_short,
    misfit,
)
from blocks.formats import Json
from persistence import EventStore, MemoryStore, Share, share_store
from render import Model, Rendered, View
from timeline._arguments import System, Tools, checked_kind, checked_name, checked_options
from timeline._flow_drivers import Flow, arun, blocking, drive, run
from timeline._models import model_named, traced_provider
from timeline.engine._artifacts import ArtifactService, Sealing, opener_of
from timeline.engine._compaction import Compactor
from timeline.engine._engine import Engine, time_ordered
from timeline.engine._following import AsyncFollower, Follower, Following
from timeline.engine._operations import Arriving, Operations, Shot, Synced
from timeline.engine._removal import Retention
from timeline.engine._settings import Options, TimelineSettings
from timeline.observe._hooks import Hooks, refuse_async
from timeline.observe._traces import Traces
from timeline.summarizers._summarizer import ExtractiveSummarizer

if TYPE_CHECKING:
    from persistence import ArtifactStore, Requester

_P = ParamSpec("_P")
_S = TypeVar("_S", bound="Shell")
_T = TypeVar("_T")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., object])
_Forked_co = TypeVar("_Forked_co", covariant=True)


@attrs.define(kw_only=True, eq=False, repr=False)
class Shell:
    """The part that `Timeline` and `AsyncTimeline` share."""

    _operations: Operations = attrs.field(alias="operations")
    _owned: EventStore | Share | None = attrs.field(default=None, alias="owned")
    """The store, or the timeline's share of it, if `open` opened it."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id!r}: version {self.version}, "
            f"model {self.settings.model.name}, window {self.settings.limit:,}>"
        )

    @property
    def id(self) -> TimelineId:
        """The timeline's name in its store."""
        return self._operations.engine.id

    @property
    def settings(self) -> TimelineSettings:
        """The settings that it was opened with: model, policy, limit, counter."""
        return self._operations.settings

    @property
    def artifacts(self) -> ArtifactStore | None:
        """The artifact store for large results, opened on first use; None: there is none."""
        return self._operations.engine.artifact_service.store

    @property
    def requester(self) -> Requester:
        """The requester on whose behalf artifacts are stored and read."""
        return self._operations.engine.artifact_service.reader

    @property
    def traces(self) -> Traces:
        """The timeline's spans, to which an agent of this timeline adds its own."""
        return self._operations.engine.traces

    @property
    def version(self) -> int:
        """The number of durable events."""
        return self._operations.engine.version

    @property
    def view(self) -> View:
        """The current state of the log, from the latest summary onward."""
        return self._operations.engine.view

    @property
    def ids(self) -> Callable[[], str]:
        """Makes ids for new blocks, as the timeline's own."""
        return self._operations.engine.ids

    @property
    def open_calls(self) -> tuple[CallId, ...]:
        """Tool calls that wait for a result."""
        return self._operations.open_calls()

    def for_model(self, model: str | Model) -> Self:
        """The same timeline for another model, for example one that answers when the first one fails: its requests are
        rendered for that model and its API, and its answers are recorded as that model's. It is the same log; closing
        one of the two closes both.

        Raises:
            MisuseError: `model` is neither a name nor a `Model`, its provider is not known, or its window is smaller
                than the room that is kept free for its answer.
        """
        target = model_named(model) if isinstance(model, str) else model
        checked_kind(target, Model, "for_model()", "model")
        if target == self.settings.model:
            return self
        settings = self.settings.for_model(target)
        return attrs.evolve(self, operations=attrs.evolve(self._operations, settings=settings))


def documented_as(other: Callable[..., object]) -> Callable[[_F], _F]:
    """A decorator that copies the docstring of the sync function to its asyncio version."""

    def decorate(function: _F) -> _F:
        function.__doc__ = other.__doc__
        return function

    return decorate


def bound(
    run: Callable[[_S, Flow[_T]], _R], operation: Callable[Concatenate[Operations, _P], Flow[_T]]
) -> Callable[Concatenate[_S, _P], _R]:
    """A method of a shell with the parameters and docstring of an operation; it returns what `run` makes of the
    operation's flow.

    Raises, when called:
        ArgumentError: the operation does not take these arguments.
    """
    shell, _, _ = run.__qualname__.rpartition(".")
    name = f"{shell}.{operation.__name__}"

    @wraps(operation)
    def method(self: _S, *args: _P.args, **named: _P.kwargs) -> _R:
        try:
            flow = operation(self._operations, *args, **named)  # pyright: ignore[reportPrivateUsage] -- its own
        except TypeError as wrong:  # Python refused the arguments; no flow has begun yet
            raise misfit(operation, f"{name}()", named, wrong) from None
        return run(self, flow)

    @wraps(operation)
    async def amethod(self: _S, *args: _P.args, **named: _P.kwargs) -> Any:
        return await cast("Any", method(self, *args, **named))

    shell_method: Any = amethod if inspect.iscoroutinefunction(run) else method
    shell_method.__qualname__, shell_method.__module__ = name, run.__module__
    signature = inspect.signature(operation)
    result = signature.return_annotation.__args__[-1]  # of Flow[result]
    result = getattr(result, "__forward_arg__", result)  # a name, if its class loads late
    shell_method.__signature__ = signature.replace(return_annotation=result)
    shell_method.__annotations__ = {**operation.__annotations__, "return": result}
    return cast("Callable[Concatenate[_S, _P], _R]", shell_method)


@checked_calls
@attrs.define(kw_only=True, eq=False, repr=False)
class Timeline(Shell):
    """One conversation: an append-only log, rendered into the next request.

    Thread-safe: every method takes the timeline's lock. Open a timeline with `Timeline.open`.

    In addition to the errors listed there, every method may raise a `StoreError`, and after `close` a `ClosedError`.
    """

    _lock: Any = attrs.field(factory=threading.RLock, alias="lock")

    @classmethod
    def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline; create it if it does not exist.

        Args:
            name: The timeline's name in its store.
            store: A store, or its path or URL (created if missing); default: a store in memory.
            model: A model's name, or a `Model`; default `claude-sonnet-5-5`.
            policy: A `Policy`, or the name of one; default `default`.
            window: Tokens that the prompt may have; default: the model's window less the output reserve.
            counter: A token counter, or `model` (default), `o200k`, `estimate`.
            count_tokens: A function that takes a request's arguments and `model`, and returns the count of the
                provider's counting endpoint; only `calibrate` calls it.
            summarizer: Writes the summaries, such as `ModelSummarizer`; default: the extractive one, which
                calls no model.
            hooks: Functions that are called before and after a compaction; see `Hooks`.
            observers: Functions, sync or async, that receive each step of a render once it is committed; see `Step`.
            tracer: An OpenTelemetry tracer, for spans of renders, compactions, calls of the store, and an agent's work.
            meter: An OpenTelemetry meter, for the tokens, durations and cost of calls, and for compactions.
            clock: A function that returns seconds since the epoch.
            ids: A function that returns new ids for blocks and events, in the form of UUIDs.
            keep_thinking: Whether recorded thinking is sent back; default True.
            validate: Whether each render checks its request against the provider's rules, and raises an
                `InvalidRequestError` if the provider would refuse it; takes some milliseconds; default False.
            artifacts: The place for large results: an artifact store, a folder or a URL; default: beside the log;
                None: no such place.
            keys: Keys that encrypt confidential and restricted results; without keys such results are
                refused, unless the store is in memory.
            requester: The requester on whose behalf artifacts are stored and read; default: one with the timeline's
                name, without a tenant.
            probe: A function that returns the current state of a call's source, so unchanged results may be cleared.
            retention: What happens to events that the window does not need, once a compaction is
                committed: `keep` (default) keeps them; `archive` moves them into files in the folder `archive`,
                where they can still be read; `forget` removes them.
            archive: The folder for `retention="archive"`.

        None means the default of an option, except for `artifacts`.

        Raises:
            ArgumentError: there is no policy of this name.
            MisuseError: the name or another option is not valid, or the file is not a store.
            StoreLockedError: another process, or a `DuckDBStore` of this one, has the file open.
            DamagedStoreError: the file is damaged.
        """
        opening = Opening(name, options)
        try:
            run(opening.flow())
        except BaseException:
            opening.give_up()
            raise
        return cls(operations=opening.operations, owned=opening.owned)

    def _run(self, flow: Flow[_T]) -> _T:
        return run(self._operations.engine.current(flow), self._lock)

    def _shot(self, flow: Flow[Shot]) -> Snapshot[Timeline]:
        return Snapshot(shot=self._run(flow), timeline=self)

    def _forked(self, flow: Flow[Operations]) -> Timeline:
        return type(self)(operations=self._run(flow))

    def _synced(self, flow: Flow[Synced[Operations]]) -> Synced[Timeline]:
        synced = self._run(flow)
        same = synced.timeline is self._operations
        return synced.on(self if same else type(self)(operations=synced.timeline))

    def _recorded(self, flow: Flow[Arriving]) -> Recording:
        return Recording(arriving=drive(flow), record=self.record)

    def _followed(self, flow: Flow[Following]) -> Follower:
        return Follower(drive(flow))

    append = bound(_run, Operations.append)
    user = bound(_run, Operations.user)
    steer = bound(_run, Operations.steer)
    followup = bound(_run, Operations.followup)
    attach = bound(_run, Operations.attach)
    record = bound(_run, Operations.record)
    recording = bound(_recorded, Operations.recording)
    sync = bound(_synced, Operations.sync)
    tool_result = bound(_run, Operations.tool_result)
    notice = bound(_run, Operations.notice)
    close_calls = bound(_run, Operations.close_calls)
    learn = bound(_run, Operations.learn)
    note = bound(_run, Operations.note)
    plan = bound(_run, Operations.plan)
    hide = bound(_run, Operations.hide)
    restore = bound(_run, Operations.restore)
    flush = bound(_run, Operations.flush)

    render = bound(_run, Operations.render)
    compact = bound(_run, Operations.compact)
    calibrate = bound(_run, Operations.calibrate)
    upgrade_summary = bound(_run, Operations.upgrade_summary)
    expand = bound(_run, Operations.expand)
    propose = bound(_run, Operations.propose)
    commit_draft = bound(_run, Operations.commit_draft)
    retain = bound(_run, Operations.retain)
    forget = bound(_run, Operations.forget)

    read = bound(_run, Operations.read)
    search = bound(_run, Operations.search)
    events = bound(_run, Operations.events)
    follow = bound(_followed, Operations.follow)
    at = bound(_run, Operations.at)
    render_at = bound(_run, Operations.render_at)
    snapshot = bound(_shot, Operations.snapshot)
    fork = bound(_forked, Operations.fork)
    sibling = bound(_forked, Operations.sibling)

    def close(self) -> None:
        """Flush; then close the store if `open` opened it and no other timeline of this process has it open, even if the
        flush fails. Idempotent."""
        run(self._operations.preparation.finish())
        with self._lock:
            engine = self._operations.engine
            if engine.closed:
                return
            try:
                run(engine.close())
            finally:
                if self._owned is not None:
                    self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked_calls
@attrs.define(kw_only=True, eq=False, repr=False)
class AsyncTimeline(Shell):
    """One conversation, for asyncio; see `Timeline`.

    Commits run in threads, summarisers and hooks may be coroutine functions, and calls run in
    the order in which they were made. Open a timeline with `await AsyncTimeline.open(...)`; `fork` of a snapshot
    is awaited, too.

    A timeline belongs to the event loop in which it was opened until that loop is closed; every method raises a
    `MisuseError` in another one.
    """

    _home: _Home = attrs.field(
        default=attrs.Factory(lambda self: _Home(self._operations), takes_self=True), alias="home"
    )

    @classmethod
    @documented_as(Timeline.open)
    async def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline; create it if it does not exist. See `Timeline.open`."""
        opening = Opening(name, options, is_async=True)
        try:
            await arun(opening.flow())
        except BaseException:
            await arun(blocking(opening.give_up))
            raise
        return cls(operations=opening.operations, owned=opening.owned)

    async def _run(self, flow: Flow[_T]) -> _T:
        return await arun(self._operations.engine.current(flow), self._home.lock())

    async def _shot(self, flow: Flow[Shot]) -> Snapshot[Awaitable[AsyncTimeline]]:
        return Snapshot(shot=await self._run(flow), timeline=self)

    async def _forked(self, flow: Flow[Operations]) -> AsyncTimeline:
        return type(self)(operations=await self._run(flow))

    async def _synced(self, flow: Flow[Synced[Operations]]) -> Synced[AsyncTimeline]:
        synced = await self._run(flow)
        same = synced.timeline is self._operations
        return synced.on(self if same else type(self)(operations=synced.timeline))

    def _recorded(self, flow: Flow[Arriving]) -> AsyncRecording:
        return AsyncRecording(arriving=drive(flow), record=self.record)

    def _followed(self, flow: Flow[Following]) -> AsyncFollower:
        return AsyncFollower(drive(flow))

    append = bound(_run, Operations.append)
    user = bound(_run, Operations.user)
    steer = bound(_run, Operations.steer)
    followup = bound(_run, Operations.followup)
    attach = bound(_run, Operations.attach)
    record = bound(_run, Operations.record)
    recording = bound(_recorded, Operations.recording)
    sync = bound(_synced, Operations.sync)
    tool_result = bound(_run, Operations.tool_result)
    notice = bound(_run, Operations.notice)
    close_calls = bound(_run, Operations.close_calls)
    learn = bound(_run, Operations.learn)
    note = bound(_run, Operations.note)
    plan = bound(_run, Operations.plan)
    hide = bound(_run, Operations.hide)
    restore = bound(_run, Operations.restore)
    flush = bound(_run, Operations.flush)

    render = bound(_run, Operations.render)
    compact = bound(_run, Operations.compact)
    calibrate = bound(_run, Operations.calibrate)
    upgrade_summary = bound(_run, Operations.upgrade_summary)
    expand = bound(_run, Operations.expand)
    propose = bound(_run, Operations.propose)
    commit_draft = bound(_run, Operations.commit_draft)
    retain = bound(_run, Operations.retain)
    forget = bound(_run, Operations.forget)

    read = bound(_run, Operations.read)
    search = bound(_run, Operations.search)
    events = bound(_run, Operations.events)
    follow = bound(_followed, Operations.follow)
    at = bound(_run, Operations.at)
    render_at = bound(_run, Operations.render_at)
    snapshot = bound(_shot, Operations.snapshot)
    fork = bound(_forked, Operations.fork)
    sibling = bound(_forked, Operations.sibling)

    async def close(self) -> None:
        """Flush; then close the store if `open` opened it and no other timeline of this process has it open, even if the
        flush fails. Idempotent."""
        lock = self._home.lock()
        await arun(self._operations.preparation.finish())
        async with lock:
            engine = self._operations.engine
            if engine.closed:
                return
            try:
                await arun(engine.close())
            finally:
                engine.closed = True  # also if it was cancelled
                if self._owned is not None:
                    await arun(blocking(self._owned.close))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@attrs.define(eq=False)
class _Home:
    """The event loop that a timeline is used in, and its lock there.

    A lock of asyncio works in one event loop only. Once that loop is closed, nothing in it will ever release the lock,
    and the timeline may go on in another one.
    """

    _operations: Operations
    _loop: Any = attrs.field(default=None, init=False)
    _lock: Any = attrs.field(default=None, init=False)
    _moving: Any = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.lock()

    def lock(self) -> Any:
        """The timeline's lock.

        Raises:
            MisuseError: the timeline is in use in another event loop.
        """
        import asyncio  # here, because it takes a sixth of the library's import time

        loop = asyncio.get_running_loop()
        with self._moving:
            if self._loop is not loop:
                if self._loop is not None and not self._loop.is_closed():
                    raise MisuseError(
                        f"timeline {self._operations.engine.id!r} is in use in another event loop: call it"
                        " there (asyncio.run_coroutine_threadsafe does that from any thread), or open it"
                        " here too, with the same store (AsyncTimeline.open)"
                    )
                self._operations.preparation.forget()
                self._loop, self._lock = loop, asyncio.Lock()
            return self._lock


# Opening.

CACHE_KEY_LENGTH: Final = 32
"""Number of characters of the hash of a timeline's name. The name itself is not sent to the provider."""


@attrs.define
class Opening:
    """A timeline that is being opened. If `flow` fails, its driver must call `give_up`."""

    name: str
    options: Options
    is_async: bool = False
    operations: Operations = attrs.field(init=False)
    owned: EventStore | Share | None = attrs.field(default=None, init=False)
    """The store, or the timeline's share of it, if it was opened here."""

    def flow(self) -> Flow[None]:
        """Open the store, then read the window."""
        yield from blocking(self._prepare)
        yield from self.operations.engine.load()

    def _prepare(self) -> None:
        name = TimelineId(checked_name(self.name, "open()"))
        options = cast("Options", checked_options(self.options))
        if not self.is_async:
            refuse_async(options.get("hooks", Hooks()))
        settings = TimelineSettings.of(options)
        store = options.get("store") or MemoryStore()
        if isinstance(store, str | PathLike):
            store, self.owned = share_store(store)
        self.operations = operations_of(name, store, settings, options)

    def give_up(self) -> None:
        """Close the store if it was opened here. Safe to call more than once."""
        if self.owned is not None:
            self.owned.close()


def operations_of(
    name: TimelineId, store: EventStore, settings: TimelineSettings, options: Options
) -> Operations:
    """The operations of a timeline that is not loaded yet."""
    clock, place = options.get("clock", time.time), options.get("artifacts", "")
    artifact_service = ArtifactService(
        timeline=name,
        opener=opener_of(store, place, options.get("keys"), clock),
        is_own=place != "" and isinstance(place, Path | str),
        requester=options.get("requester"),
        probe=options.get("probe"),
        clock=clock,
        seconds=settings.policy.artifact_seconds,
    )
    can_externalize = artifact_service.opener is not None
    sealing = Sealing(
        service=artifact_service,
        ids=options.get("ids", time_ordered),
        policy=settings.policy,
        is_possible=can_externalize and settings.can_encrypt,
        is_needed=not isinstance(store, MemoryStore),
    )
    settings = attrs.evolve(
        settings,
        can_externalize=can_externalize,
        can_seal=sealing.is_possible or not sealing.is_needed,
        cache_key=sha256(f"foldline:{name}".encode()).hexdigest()[:CACHE_KEY_LENGTH],
    )
    observers = tuple(options.get("observers", ()))
    retention = Retention.of(options.get("retention"), options.get("archive"), store)
    engine = Engine(
        id=name,
        store=store,
        ids=options.get("ids", time_ordered),
        clock=clock,
        sealing=sealing,
        retention=retention,
        traces=_traces_of(settings, options),
        observers=observers,
        artifact_service=artifact_service,
        compactor=Compactor(
            hooks=options.get("hooks", Hooks()),
            summarizer=options.get("summarizer", ExtractiveSummarizer()),
            artifact_service=artifact_service,
        ),
    )
    return Operations(engine=engine, settings=settings)


def _traces_of(settings: TimelineSettings, options: Options) -> Traces:
    return Traces(
        provider=traced_provider(settings.model),
        model=settings.model.name,
        tracer=options.get("tracer"),
        meter=options.get("meter"),
        price=partial(_dollars, settings.model),
    )


def _dollars(own: Model, usage: UsageRecorded) -> float | None:
    from timeline.billing import dollars_of  # here, because only a meter needs it

    return dollars_of(own, usage)


# Recording a stream.


@attrs.define(kw_only=True, eq=False)
class _Recording:
    """Takes the events of a stream, and records their content when it ends."""

    _arriving: Arriving = attrs.field(alias="arriving")
    _record: Callable[..., Any] = attrs.field(alias="record")
    version: int | None = attrs.field(default=None, init=False)
    """The version of the timeline after the recording; None: not recorded yet, or nothing arrived."""
    _first: Json | None = attrs.field(default=None, init=False)

    def add(self, event: object) -> None:
        """Take the next event of the stream: the SDK's object, or its JSON.

        Raises:
            ArgumentError: it is not an event of this format.
        """
        fields = formats.event_of(event)
        self._first = self._first or fields
        self._arriving.stream.add(fields)

    @property
    def response(self) -> Json | None:
        """The JSON of the response as far as it arrived; None: nothing arrived."""
        return self._arriving.stream.response()

    def _whole(self, failure: object) -> Json | None:
        """The response to record, if it is not recorded yet."""
        arriving = self._arriving
        untouched = formats.stream_of(arriving.format, "")
        if self._first and not failure and arriving.stream == untouched:
            fields = in_short(", ".join(self._first))
            raise ArgumentError(
                f"recording({arriving.format!r}): no event of the stream is of this format; the first has {fields}"
            )
        return self.response if self.version is None else None


class Recording(_Recording):
    """Takes the events of a stream; leaving its `with` block records their content once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if (response := self._whole(failure)) is not None:
            arriving = self._arriving
            self.version = self._record(response, arriving.rendered, format=arriving.format)


class AsyncRecording(_Recording):
    """A `Recording` for `async with`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, failure: object, *_: object) -> None:
        if (response := self._whole(failure)) is not None:
            arriving = self._arriving
            self.version = await self._record(response, arriving.rendered, format=arriving.format)


# Snapshots.


class _Forkable(Protocol[_Forked_co]):
    def fork(self, name: str, *, at: int | None = None) -> _Forked_co: ...


@checked_calls
@attrs.frozen(kw_only=True)
class Snapshot(Generic[_Forked_co]):
    """A timeline as it was at one moment. It decides nothing, writes nothing and never changes."""

    _shot: Shot = attrs.field(alias="shot")
    _timeline: _Forkable[_Forked_co] = attrs.field(alias="timeline", repr=False, eq=False)

    @property
    def version(self) -> int:
        """Events in the log at that moment."""
        return self._shot.version

    @property
    def view(self) -> View:
        """The log at that moment, from the latest summary onward."""
        return self._shot.view

    def render(self, *, system: System = None, tools: Tools = None) -> Rendered:
        """The request that the log rendered to at that moment: always the same bytes."""
        context = self._shot.settings.context(system, tools, self._shot.at)
        return render.show(self._shot.view, context)

    def fork(self, name: str) -> _Forked_co:
        """A new timeline that begins as a copy of that moment.

        Raises:
            TimelineExistsError: there is already a timeline of this name.
        """
        return self._timeline.fork(name, at=self._shot.version)
