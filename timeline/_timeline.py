"""The timeline: append to it, render it, reopen it later."""

import threading
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import attrs

from blocks import checked_calls
from timeline.engine._flow import Flow, drive
from timeline.engine._open import Opening
from timeline.engine._operations import Operations
from timeline.engine._settings import Options
from timeline.engine._shell import Shell, bound
from timeline.engine._snapshot import Shot, Snapshot

_T = TypeVar("_T")


@checked_calls()
@attrs.define(kw_only=True, eq=False, repr=False)
class Timeline(Shell):
    """One conversation: an append-only log, rendered into the next request.

    Safe under threads: every method takes the timeline's lock. Open one with `Timeline.open`.

    Beside what each method says, any may raise a `StoreError`, and after `close` a `ClosedError`.
    """

    _lock: Any = attrs.field(factory=threading.RLock, init=False)

    @classmethod
    def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline, or begin it.

        Args:
            name: The timeline's name in its store.
            store: A store, or the path or URL of one, made if missing; without one: in memory.
            model: A model's name, or a `Model`; default `claude-sonnet-5-5`.
            policy: A `Policy`, or the name of one; default `default`.
            window: Tokens that the prompt may have; default: the model's window less the output reserve.
            counter: A counter of tokens, or `model` (default), `o200k`, `estimate`.
            summarizer: Writes the summaries, such as `AnthropicSummarizer`; default: the one that
                quotes and asks no model.
            hooks: What is called before and after a compaction; see `Hooks`.
            observers: Functions that are told each step of a render once it is committed; see `Step`.
                Sync or async, like hooks.
            tracer: An OpenTelemetry tracer: a span for each render, an event in it for each step.
            clock: A function that returns seconds since the epoch.
            ids: A function that returns new ids for blocks and events, in the form of UUIDs.
            keep_thinking: Whether recorded thinking is sent back; default True.
            artifacts: Where large results go: a store, a folder, a URL; default: beside the log;
                None: nowhere.
            keys: What confidential and restricted artifacts are encrypted with; without keys they stay
                in the prompt.
            requester: In whose name artifacts are stored and read; default: the timeline's, without a
                tenant.
            probe: Says what the source of a call looks like now, so that unchanged results may be
                cleared.

        An option that is None is as if it were not given; of `artifacts` it means nowhere.

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
        return drive(self._operations.engine.current(flow), self._lock)

    def _shot(self, flow: Flow[Shot]) -> "Snapshot[Timeline]":
        return Snapshot(shot=self._run(flow), timeline=self)

    def _forked(self, flow: Flow[Operations]) -> "Timeline":
        return type(self)(operations=self._run(flow))

    append = bound(_run, Operations.append)
    user = bound(_run, Operations.user)
    steer = bound(_run, Operations.steer)
    followup = bound(_run, Operations.followup)
    attach = bound(_run, Operations.attach)
    record = bound(_run, Operations.record)
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
    upgrade_summary = bound(_run, Operations.upgrade_summary)
    expand = bound(_run, Operations.expand)
    propose = bound(_run, Operations.propose)
    commit_plan = bound(_run, Operations.commit_plan)

    read = bound(_run, Operations.read)
    search = bound(_run, Operations.search)
    events = bound(_run, Operations.events)
    at = bound(_run, Operations.at)
    render_at = bound(_run, Operations.render_at)
    snapshot = bound(_shot, Operations.snapshot)
    fork = bound(_forked, Operations.fork)

    def close(self) -> None:
        """Flush, and close the store if `open` made it, whether the flush failed or not. Idempotent."""
        drive(self._operations.preparation.finish())
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
