"""What happened, derived from a log: what a render did, step by step, and signs of whether prompts had what was needed.

Each decision of a render is one step, with the tokens of the whole request before and after it.  Steps are derived from
the committed events, and only if there is an observer or a tracer.

The quality signals:

    asked_again    a call that repeats an earlier one, in the same or other words, whose result was
                   hidden or folded at that moment; or a question that a hidden or folded block answers
    explicit_read  the model read something back with a reading tool
    rehydrated     an artifact came back into a prompt by itself
    task_end       whether a turn ended with the agent's answer

The view `quality` of a DuckDB file computes them; for events of another store, in a database in memory.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

import attrs

from blocks import (
    ArgumentError,
    BlockId,
    BlocksHidden,
    CompactionSkipped,
    Event,
    HideReason,
    RangeCompacted,
    Recorded,
    SkipReason,
    SummaryPrepared,
    TimelineId,
    TurnId,
    in_words,
)
from render import Context, Rendered, View, commit, total_tokens

StepKind: TypeAlias = Literal[
    "pruned",
    "clipped",
    "hidden",
    "due",
    "proposed",
    "externalized",
    "summarized",
    "cleared",
    "dropped",
    "skipped",
    "prepared",
    "rehydrated",
    "rendered",
    "unretained",
]
_KINDS: Final[dict[HideReason, StepKind]] = {
    "expired": "pruned",
    "clipped": "clipped",
    "externalized": "externalized",
    "cleared": "cleared",
    "dropped": "dropped",
    "requested": "hidden",
    "unsigned": "hidden",
}
_RUNGS: Final[dict[StepKind, str]] = {
    "externalized": "externalize",
    "summarized": "summarize",
    "cleared": "clear",
    "dropped": "drop",
}
"""The kind of step for a compaction's effect, and the rung that proposed it."""
_BEFORE_A_DRAFT: Final[frozenset[SkipReason]] = frozenset({"no_cut", "cannot_fit"})
"""Reasons for which a compaction is skipped before there is a draft."""


@attrs.frozen(kw_only=True)
class Step:
    """One step of a render."""

    timeline: TimelineId
    """The timeline that was rendered."""
    kind: StepKind
    """What was done."""
    at: float
    """Seconds since the epoch, by the timeline's clock."""
    tokens_before: int
    """Tokens of the whole request before the step."""
    tokens_after: int
    """Tokens of the whole request after the step."""
    limit: int
    """Tokens that the request may have."""
    blocks: int = 0
    """The number of blocks that it concerned."""
    first: int = 0
    """Version of the oldest of these blocks; 0: none in particular."""
    last: int = 0
    """Version of the newest of these blocks."""
    detail: str = ""
    """The trigger of a compaction that is due and of a fold, the rungs of a draft, the reason of a skip, the
    artifacts that came back, or the reason why retention failed."""

    @property
    def tokens_freed(self) -> int:
        """The number of tokens by which the request became shorter."""
        return self.tokens_before - self.tokens_after


Observer: TypeAlias = Callable[[Step], Any]


def steps_of(
    name: TimelineId, before: View, rendered: Rendered, context: Context
) -> Iterator[Step]:
    """The steps of a render that began with the view `before`."""
    view, tokens = before, total_tokens(before, context)
    place: dict[str, Any] = {"timeline": name, "at": context.now, "limit": context.limit}
    versions = {e.block.id: e.version for e in before.entries}
    to_announce = list(_announced(rendered.decisions, versions))
    steps: list[Step] = []
    for event in rendered.decisions:
        view = commit(view, event)
        after = total_tokens(view, context)
        described = _step(event, versions)
        if described is not None:
            if described.kind in _RUNGS or described.kind == "skipped":
                now = {"tokens_before": tokens, "tokens_after": tokens, **place}
                steps += [attrs.evolve(announced, **now) for announced in to_announce]
                to_announce.clear()
            steps.append(attrs.evolve(described, tokens_before=tokens, tokens_after=after, **place))
        elif steps:  # such as a prune's notice to the model
            steps[-1] = attrs.evolve(steps[-1], tokens_after=after)
        tokens = after
    yield from steps
    total = rendered.tokens
    last = attrs.evolve(_BLANK, tokens_before=tokens, tokens_after=total, **place)
    if came := rendered.rehydrated:
        yield attrs.evolve(last, kind="rehydrated", blocks=len(came), detail=", ".join(came))
        last = attrs.evolve(last, tokens_before=total)
    yield last


_BLANK: Final = Step(
    timeline=TimelineId(""), kind="rendered", at=0.0, tokens_before=0, tokens_after=0, limit=0
)


def _announced(decisions: Iterable[Event], versions: dict[BlockId, int]) -> Iterator[Step]:
    """The steps before the rungs of a compaction: it was due, and a draft was proposed."""
    steps = (_step(event, versions) for event in decisions)
    done = [step for step in steps if step and step.kind in _RUNGS]
    skips = [event for event in decisions if isinstance(event, CompactionSkipped)]
    if done or skips:
        trigger = next((step.detail for step in done if step.kind == "summarized"), "")
        yield attrs.evolve(_BLANK, kind="due", detail=trigger)
    if done or any(event.reason not in _BEFORE_A_DRAFT for event in skips):
        yield attrs.evolve(
            _BLANK,
            kind="proposed",
            blocks=sum(step.blocks for step in done),
            first=min((step.first for step in done), default=0),
            last=max((step.last for step in done), default=0),
            detail=", ".join(dict.fromkeys(_RUNGS[step.kind] for step in done)),
        )


def _step(event: Event, versions: dict[BlockId, int]) -> Step | None:
    """The step of an event, without its timeline, time and tokens, which are filled in later."""
    step = partial(attrs.evolve, _BLANK)
    match event:
        case BlocksHidden(hidden=hidden):
            places = [versions[h.block] for h in hidden if h.block in versions] or [0]
            kind, first, last = _KINDS[event.reason], min(places), max(places)
            return step(kind=kind, blocks=len(hidden), first=first, last=last)
        case RangeCompacted(start=start, cut=cut):
            folded = sum(start <= version < cut for version in versions.values())
            last, why = cut - 1, event.trigger
            return step(kind="summarized", blocks=folded, first=start, last=last, detail=why)
        case CompactionSkipped():
            return step(kind="skipped", detail=event.reason)
        case SummaryPrepared():
            return step(kind="prepared", last=event.cut - 1)
        case _:
            return None


# Quality signals


Signal: TypeAlias = Literal["asked_again", "explicit_read", "rehydrated", "task_end"]
SIGNALS: Final[tuple[Signal, ...]] = ("asked_again", "explicit_read", "rehydrated", "task_end")
COMPLETED: Final = "completed"


@attrs.frozen
class QualityMark:
    """One quality signal at one place in the log."""

    signal: Signal
    version: int
    """Version of the event that shows it."""
    turn: TurnId
    detail: str
    """The tool or `question`, with the place of the earlier call or answer; the artifacts; `completed`
    or `unfinished`."""


@attrs.frozen(kw_only=True)
class Quality:
    """All quality signals of a log, in the order of the log."""

    rows: tuple[QualityMark, ...] = ()
    compactions: int = 0

    @property
    def totals(self) -> dict[Signal, int]:
        """The number of signals of each kind."""
        counts = Counter(row.signal for row in self.rows)
        return {signal: counts[signal] for signal in SIGNALS}

    @property
    def per_compaction(self) -> dict[Signal, float]:
        """The number of signals of each kind per compaction; empty if there was no compaction."""
        if not self.compactions:
            return {}
        return {signal: count / self.compactions for signal, count in self.totals.items()}

    @property
    def completed(self) -> int:
        """The number of turns that ended with the agent's answer."""
        return sum(row.signal == "task_end" and row.detail == COMPLETED for row in self.rows)


def _checked(events: object) -> list[Recorded]:
    log: list[Any] = (
        list(cast("Iterable[Any]", events)) if isinstance(events, Iterable) else [events]
    )
    for pair in log:
        if not (isinstance(pair, tuple) and len(cast("tuple[Any, ...]", pair)) == 2):  # noqa: PLR2004 -- a pair
            raise ArgumentError(
                f"quality_of() takes the events of a timeline (timeline.events()), not {in_words(events)}"
            )
        version, event = cast("tuple[Any, Any]", pair)
        if not isinstance(version, int) or not isinstance(getattr(event, "at", None), int | float):
            raise ArgumentError(
                f"quality_of(): expected a version and an event, not {in_words(version)} and {in_words(event)}"
            )
    return log


def quality_of(events: Iterable[Recorded]) -> Quality:
    """The quality signals of a whole log.

    Raises:
        ArgumentError: it is not a list of pairs of a version and an event, as `Timeline.events` returns it.
    """
    from persistence import quality_rows  # here, because it loads DuckDB

    log = _checked(events)
    rows = (
        QualityMark(cast("Signal", signal), version, TurnId(turn), detail)
        for signal, version, turn, detail in quality_rows(log)
    )
    compactions = sum(isinstance(event, RangeCompacted) for _, event in log)
    return Quality(rows=tuple(rows), compactions=compactions)
