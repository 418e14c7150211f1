"""Summarisers, which write the text that replaces folded blocks, and the time limit for them.

The default is extractive: it quotes, needs no model, and gives the same text every time.

Any other summariser is other people's code that uses a network.  It is called in a thread of its own (or, if it
is async, in a task of its own), and abandoned when it takes longer than the policy's `summary_seconds`.  A thread
cannot be ended, so it is left running; as long as it hangs, the summariser is not called again.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import msgspec

import render
from blocks import FoldlineError, Provenance, StructuredSummary, clean_json
from render import Context, View
from timeline._flow_drivers import AskSummarizer, in_thread

if TYPE_CHECKING:
    from asyncio import Task

    from render import FoldRange, Summary


class SummaryFailedError(FoldlineError):
    """The summariser gave no usable summary; the message says what it gave instead."""

    provenance: Provenance | None = None
    """The cost of the failed calls."""


@attrs.frozen(kw_only=True)
class SummaryRequest:
    """The input of a summariser."""

    range: FoldRange
    view: View = attrs.field(repr=False)
    context: Context = attrs.field(repr=False)
    calls_max: int | None = None
    """How many calls of a model the policy leaves for it (`Policy.summaries_max`); None: any number."""


class Summarizer(Protocol):
    """Writes the summary of a range. In an `AsyncTimeline` it may be a coroutine function."""

    def __call__(self, request: SummaryRequest, /) -> Any:
        """A `Summary`, or an awaitable of one."""
        ...


class ExtractiveSummarizer:
    """Quotes blocks instead of calling a model: deterministic, free, never fails."""

    def __call__(self, request: SummaryRequest, /) -> Summary:
        return render.extractive(request.range)


def is_free(summarizer: Summarizer) -> bool:
    """Whether a summariser calls no model: ours does not, and others may say so by an empty `name`."""
    return isinstance(summarizer, ExtractiveSummarizer) or getattr(summarizer, "name", None) == ""


def model_asked(summarizer: Summarizer, timelines: str) -> str:
    """The model that a summariser calls, given the timeline's model; empty: it does not say, or calls none."""
    name: str | None = getattr(summarizer, "name", "")
    return timelines if name == "timeline" else name or ""


def summarize(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """Call a sync summariser.

    Raises:
        TypeError: the answer is not a `Summary`.
    """
    answer = summarizer(request)
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("this summariser is async; use it with AsyncTimeline")
    return checked(answer)


def checked_summary(summary: StructuredSummary) -> StructuredSummary:
    """The summary with its fields checked, so that it can be stored and sent.

    Raises:
        msgspec.ValidationError: a field has an invalid value.
    """
    return msgspec.convert(clean_json(msgspec.to_builtins(summary)), StructuredSummary)


def checked(answer: object) -> Summary:
    """The answer, if it is a summary.

    Raises:
        TypeError: the answer is not a `Summary`.
    """
    if not isinstance(answer, render.Summary):
        raise TypeError(f"a summariser must return a Summary, not {type(answer).__name__}")
    try:
        summary = checked_summary(answer.summary)
    except msgspec.ValidationError as error:
        raise TypeError(f"a summariser's Summary has an invalid value: {error}") from error
    return answer if summary == answer.summary else attrs.evolve(answer, summary=summary)


log = logging.getLogger("foldline")


@attrs.define(eq=False)
class SummarizerWait:
    """Waits for a timeline's summariser, at most `Policy.summary_seconds`."""

    _summarizer: Summarizer | None = attrs.field(default=None, init=False)
    """The summariser of the latest call."""
    _parts: tuple[Future[Any] | Task[Any], ...] = attrs.field(default=(), init=False)
    """The futures and tasks in which that call runs."""

    def asking(self, summarizer: Summarizer, request: SummaryRequest) -> AskSummarizer:
        """The effect that a flow yields to call its summariser."""
        return AskSummarizer(
            partial(self.ask, summarizer, request), partial(self.aask, summarizer, request)
        )

    def ask(self, summarizer: Summarizer, request: SummaryRequest) -> Summary:
        """The answer of a sync summariser.

        Raises:
            SummaryFailedError: the summariser took too long, or has not returned from an earlier call.
            TypeError: the answer is not a `Summary`.
        """
        if _is_quick(summarizer, request):
            return summarize(summarizer, request)
        seconds = self._check(summarizer, request)
        answer = in_thread(lambda: summarize(summarizer, request))
        self._summarizer, self._parts = summarizer, (answer,)
        try:
            return checked(answer.result(seconds))
        except TimeoutError:
            if answer.done():  # raised by the summariser itself
                raise
            raise _too_long(seconds) from None

    async def aask(self, summarizer: Summarizer, request: SummaryRequest) -> Summary:
        """The answer of a sync or async summariser; a sync one is called in a thread.

        Raises:
            SummaryFailedError: as for `ask`.
            TypeError: as for `ask`.
        """
        if _is_quick(summarizer, request):
            return await self._answer(summarizer, request)
        from asyncio import ensure_future, wait

        seconds = self._check(summarizer, request)
        started: tuple[Future[Any], ...] = ()
        if not _is_async(summarizer):
            started = (in_thread(lambda: summarizer(request)),)
        task = ensure_future(self._answer(summarizer, request, *started))
        task.add_done_callback(_read_exception)
        self._summarizer, self._parts = summarizer, (task, *started)
        try:
            await wait([task], timeout=seconds)
            is_done = task.done()
        finally:
            task.cancel()
        if not is_done:
            raise _too_long(seconds)
        return task.result()

    async def _answer(
        self, summarizer: Summarizer, request: SummaryRequest, *started: Future[Any]
    ) -> Summary:
        from asyncio import wrap_future

        answer = await wrap_future(started[0]) if started else summarizer(request)
        return checked(await answer if inspect.isawaitable(answer) else answer)

    def hangs(self, summarizer: Summarizer) -> bool:
        """Whether the summariser has not returned from an earlier call; it is not called again until it has."""
        return self._summarizer is summarizer and not all(part.done() for part in self._parts)

    def _check(self, summarizer: Summarizer, request: SummaryRequest) -> float:
        """Seconds to wait for an answer; raises if the summariser still hangs."""
        if self.hangs(summarizer):
            raise SummaryFailedError("the summariser has not returned from an earlier call")
        return request.context.policy.summary_seconds


def _is_quick(summarizer: Summarizer, request: SummaryRequest) -> bool:
    """Whether the summariser is called directly: it is our extractive one, or there is no time limit."""
    is_ours = isinstance(summarizer, ExtractiveSummarizer)
    return is_ours or not request.context.policy.summary_seconds


def _is_async(summarizer: Summarizer) -> bool:
    called: Callable[..., Any] = type(summarizer).__call__
    return inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(called)


def _too_long(seconds: float) -> SummaryFailedError:
    log.warning("the summariser gave no answer in %g seconds; it is left behind", seconds)
    return SummaryFailedError(f"no summary in {seconds:g} seconds (`summary_seconds`)")


def _read_exception(task: Task[Any]) -> None:
    """Read the exception of an abandoned task, so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
