"""The timeline: append to it, render it, reopen it later."""

import inspect
import threading
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

import attrs

from blocks import CallId, TimelineId, checked_calls, misfit
from persistence import EventStore
from render import View
from timeline._flow import Flow, drive, run
from timeline.engine._followers import Follower
from timeline.engine._following import Following
from timeline.engine._open import Opening
from timeline.engine._operations import Operations
from timeline.engine._settings import Options, Settings
from timeline.engine._snapshot import Shot, Snapshot
from timeline.engine._streaming import Arriving, Recording
from timeline.engine._sync import Synced
from timeline.observe._traces import Traces

if TYPE_CHECKING:
    from persistence import ArtifactStore, Requester

_P = ParamSpec("_P")
_S = TypeVar("_S", bound="Shell")
_T = TypeVar("_T")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., object])


@attrs.define(kw_only=True, eq=False, repr=False)
class Shell:
    """The part that `Timeline` and `AsyncTimeline` share."""

    _operations: Operations = attrs.field(alias="operations")
    _owned: EventStore | None = attrs.field(default=None, alias="owned")
    """The store, if it was made for this timeline."""

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
    def settings(self) -> Settings:
        """The settings that it was opened with: model, policy, limit, counter."""
        return self._operations.settings

    @property
    def artifacts(self) -> "ArtifactStore | None":
        """The artifact store for large results, opened on first use; None: there is none."""
        return self._operations.engine.artifact_service.store

    @property
    def requester(self) -> "Requester":
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
    def open_calls(self) -> tuple[CallId, ...]:
        """Tool calls that wait for a result."""
        return self._operations.open_calls()


def documented_as(other: Callable[..., object]) -> Callable[[_F], _F]:
    """A decorator that copies the docstring of the sync function to its asyncio version."""

    def decorate(function: _F) -> _F:
        function.__doc__ = other.__doc__
        return function

    return decorate


def bound(
    run: Callable[[_S, Flow[_T]], _R],
    operation: Callable[Concatenate[Operations, _P], Flow[_T]],
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

    found: Any = amethod if inspect.iscoroutinefunction(run) else method
    found.__qualname__, found.__module__ = name, run.__module__
    signature = inspect.signature(operation)
    result = signature.return_annotation.__args__[-1]  # of Flow[result]
    found.__signature__ = signature.replace(return_annotation=result)
    found.__annotations__ = {**operation.__annotations__, "return": result}
    return cast("Callable[Concatenate[_S, _P], _R]", found)


@checked_calls()
@attrs.define(kw_only=True, eq=False, repr=False)
class Timeline(Shell):
    """One conversation: an append-only log, rendered into the next request.

    Thread-safe: every method takes the timeline's lock. Open a timeline with `Timeline.open`.

    In addition to the errors listed there, every method may raise a `StoreError`, and after `close` a `ClosedError`.
    """

    _lock: Any = attrs.field(factory=threading.RLock, init=False)

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
            tracer: An OpenTelemetry tracer for spans of renders (each step an event), compactions, calls of the
                store, and the work of an agent of this timeline.
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
            PolicyError: there is no policy of this name.
            MisuseError: the name or another option is not valid, or the file is not a store.
            StoreLockedError: another process has the file open.
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

    def _shot(self, flow: Flow[Shot]) -> "Snapshot[Timeline]":
        return Snapshot(shot=self._run(flow), timeline=self)

    def _forked(self, flow: Flow[Operations]) -> "Timeline":
        return type(self)(operations=self._run(flow))

    def _synced(self, flow: Flow[Synced[Operations]]) -> "Synced[Timeline]":
        found = self._run(flow)
        same = found.timeline is self._operations
        return found.on(self if same else type(self)(operations=found.timeline))

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
    commit_plan = bound(_run, Operations.commit_plan)
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

    def close(self) -> None:
        """Flush; then close the store if `open` created it, even if the flush fails. Idempotent."""
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
