"""What a render did, step by step, for whoever watches: observers and traces.

Each decision is one step, with the tokens of the whole request before and after it.  Steps are worked
out from the events that were committed, and only when somebody watches.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import attrs

from blocks import (
    BlockId,
    BlocksHidden,
    CompactionSkipped,
    Event,
    HideReason,
    RangeCompacted,
    SummaryPrepared,
    TimelineId,
)
from render import Context, Rendered, View, commit, total_tokens

StepKind: TypeAlias = Literal[
    "pruned",
    "clipped",
    "hidden",
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


@attrs.frozen(kw_only=True)
class Step:
    """One thing that a render did."""

    timeline: TimelineId
    kind: StepKind
    at: float
    """Seconds since the epoch, by the timeline's clock."""
    tokens_before: int
    """Of the whole request."""
    tokens_after: int
    limit: int
    blocks: int = 0
    """How many it concerned."""
    first: int = 0
    last: int = 0
    """Versions of the oldest and the newest of them; 0: none in particular."""
    detail: str = ""
    """The trigger of a fold, the reason of a skip, the artifacts that came back, or why what a fold left
    behind is still in the store."""

    @property
    def tokens_freed(self) -> int:
        """What the request is shorter by."""
        return self.tokens_before - self.tokens_after


Observer: TypeAlias = Callable[[Step], Any]


def steps_of(
    name: TimelineId, before: View, rendered: Rendered, context: Context
) -> Iterator[Step]:
    """The steps of a render that began with the view `before`."""
    view, tokens = before, total_tokens(before, context)
    versions = {e.block.id: e.version for e in before.entries}
    step: Step | None = None
    for event in rendered.decisions:
        view = commit(view, event)
        after = total_tokens(view, context)
        made = _step(event, versions)
        if made is None and step is not None:  # a prune's notice to the model
            step = attrs.evolve(step, tokens_after=after)
        elif made is not None:
            if step is not None:
                yield step
            step = attrs.evolve(
                made,
                timeline=name,
                at=context.now,
                tokens_before=tokens,
                tokens_after=after,
                limit=context.limit,
            )
        tokens = after
    if step is not None:
        yield step
    last = Step(
        timeline=name,
        kind="rendered",
        at=context.now,
        tokens_before=tokens,
        tokens_after=rendered.tokens,
        limit=context.limit,
    )
    if rendered.rehydrated:
        came, total = rendered.rehydrated, rendered.tokens
        yield attrs.evolve(last, kind="rehydrated", blocks=len(came), detail=", ".join(came))
        last = attrs.evolve(last, tokens_before=total)
    yield last


_BLANK: Final = Step(
    timeline=TimelineId(""), kind="rendered", at=0.0, tokens_before=0, tokens_after=0, limit=0
)


def _step(event: Event, versions: dict[BlockId, int]) -> Step | None:
    """What an event says of its step; the step's place and tokens are still to be filled in."""
    step = partial(attrs.evolve, _BLANK)
    match event:
        case BlocksHidden(hidden=hidden):
            found = [versions[h.block] for h in hidden if h.block in versions] or [0]
            kind, ends = _KINDS[event.reason], (min(found), max(found))
            return step(kind=kind, blocks=len(hidden), first=ends[0], last=ends[1])
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
