"""Computes the result of a finished replay."""

from collections.abc import Sequence
from statistics import fmean

from blocks import BlocksHidden, RangeCompacted
from timeline.replay._replay import Replay
from timeline.replay._result import CacheTotals, Cost, Milliseconds, ReplayResult

NOTICES_MAX = 100
COMPACTED = frozenset({"compacted", "moved"})
"""The words for a compaction in `Point.events`."""


def result_of(replay: Replay, counter: str, store_bytes: int) -> ReplayResult:
    """The result of a finished replay."""
    session, replayed, bill = replay.session, replay.replayed, replay.bill
    tokens = [point.tokens for point in replay.points]
    prunes, clips = _hides(replay, "expired"), _hides(replay, "clipped")
    folds = [event for event in replay.decisions if isinstance(event, RangeCompacted)]
    return ReplayResult(
        session=session.name,
        format=session.format,
        model=replayed.settings.model.name,
        recorded=session.model,
        guess=replay.guess,
        window=replayed.settings.limit,
        policy=replayed.settings.policy.name,
        counter=counter,
        calls=len(replay.points),
        blocks=replay.coverage.blocks,
        events=replayed.timeline.version,
        turns=len({block.turn for item in session.items for block in item.blocks}),
        rounds=len(session.calls),
        tool_calls=replay.coverage.tool_calls,
        tool_results=replay.coverage.tool_results,
        compactions=sum(not COMPACTED.isdisjoint(point.events) for point in replay.points),
        folds=len(folds),
        prunes=prunes,
        clips=clips,
        externalized=_blocks(replay, "externalized"),
        cleared=_blocks(replay, "cleared"),
        dropped=_blocks(replay, "dropped"),
        split_turns=sum(fold.summary.split_turn_id is not None for fold in folds),
        tokens_max=max(tokens, default=0),
        tokens_mean=round(fmean(tokens)) if tokens else 0,
        over_window_calls=replay.over_window,
        cannot_fit=replay.cannot_fit,
        validity_violations=replay.violations,
        warm_busts=bill.busts,
        cache=CacheTotals(read=bill.read, write=bill.write, uncached=bill.uncached),
        cost=_cost(bill.dollars, bill.summary_dollars, replay.reference.bill.dollars),
        units=_cost(bill.units, bill.summary_units, replay.reference.bill.units),
        recall=replay.memory.recall,
        rules=replay.memory.rules,
        ms_per_call=_milliseconds(replay.milliseconds),
        store_bytes=store_bytes,
        coverage=replay.coverage,
        reopened_equal=replay.reopened_equal,
        notices=_notices(replay),
        points=tuple(replay.points),
    )


def _hides(replay: Replay, reason: str) -> int:
    """The number of events that hid blocks for this reason."""
    hides = (event for event in replay.decisions if isinstance(event, BlocksHidden))
    return sum(event.reason == reason for event in hides)


def _blocks(replay: Replay, reason: str) -> int:
    """The number of blocks hidden for this reason."""
    hides = (event for event in replay.decisions if isinstance(event, BlocksHidden))
    return sum(len(event.hidden) for event in hides if event.reason == reason)


def _cost(prompt: float, summaries: float, full: float) -> Cost:
    return Cost(prompt=prompt, summaries=summaries, total=prompt + summaries, full_history=full)


def _milliseconds(values: Sequence[float]) -> Milliseconds:
    ordered = sorted(values) or [0.0]
    last = len(ordered) - 1
    p50, p99 = ordered[last // 2], ordered[round(0.99 * last)]
    return Milliseconds(p50=round(p50, 2), p99=round(p99, 2), max=round(ordered[last], 2))


def _notices(replay: Replay) -> tuple[str, ...]:
    read = (f"line {n.line}: {n.text}" if n.line else n.text for n in replay.session.notices)
    notices = (*read, *replay.notices.values())
    if (left := len(notices) - NOTICES_MAX) > 0:
        return (*notices[:NOTICES_MAX], f"{left:,} more such notices are left out here")
    return notices
