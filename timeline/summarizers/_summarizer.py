"""Summarisers: who writes the text that stands for folded blocks.

The default is extractive: it quotes, needs no model, and gives the same text every time.
"""

import inspect
from typing import Any, Protocol

import attrs
import msgspec

from blocks import FoldlineError, Provenance, StructuredSummary, clean_json
from render import Context, RangePlan, Summary, View, extractive


class SummaryFailedError(FoldlineError):
    """The summariser gave no usable summary; the message says what it gave instead."""

    provenance: Provenance | None = None
    """What was spent for nothing."""


@attrs.frozen(kw_only=True)
class SummaryRequest:
    """What a summariser is given."""

    plan: RangePlan
    view: View = attrs.field(repr=False)
    context: Context = attrs.field(repr=False)


class Summarizer(Protocol):
    """Writes a summary for a plan. May be a coroutine function where an `AsyncTimeline` asks."""

    def __call__(self, request: SummaryRequest, /) -> Any:
        """A `Summary`, or an awaitable of one."""
        ...


class ExtractiveSummarizer:
    """Quotes instead of writing: deterministic, free, never fails."""

    def __call__(self, request: SummaryRequest, /) -> Summary:
        return extractive(request.plan)


def summarize(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """Ask a sync summariser.

    Raises:
        TypeError: it answered with something else than a `Summary`.
    """
    answer = summarizer(request)
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("this summariser is async; use it with AsyncTimeline")
    return checked(answer)


async def asummarize(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """Ask a summariser of either kind."""
    answer = summarizer(request)
    return checked(await answer if inspect.isawaitable(answer) else answer)


def checked_summary(summary: StructuredSummary) -> StructuredSummary:
    """The summary as it can be stored and sent.

    Raises:
        msgspec.ValidationError: a field holds what it cannot.
    """
    return msgspec.convert(clean_json(msgspec.to_builtins(summary)), StructuredSummary)


def checked(answer: object) -> Summary:
    """An answer, if it is a summary.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(answer, Summary):
        raise TypeError(f"a summariser must return a Summary, not {type(answer).__name__}")
    try:
        written = checked_summary(answer.summary)
    except msgspec.ValidationError as error:
        raise TypeError(f"a summariser's Summary holds what it cannot: {error}") from error
    return answer if written == answer.summary else attrs.evolve(answer, summary=written)
