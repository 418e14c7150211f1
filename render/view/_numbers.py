"""What events change in the numbers of the fold."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from blocks import (
    ArtifactId,
    BlockId,
    Calibration,
    FoldState,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    UsageRecorded,
)
from render.view._calibration import calibrated
from render.view._rounds import now_waiting

REMEMBERED_MAX: Final = 32
"""Artifacts of which the log's fold knows when they came back: more than any cool-down needs."""


def after_request(before: FoldState, event: RequestRendered, shown: int) -> FoldState:
    """A request was handed out, of the view at version `shown`."""
    tail = event.cache_points[-1] if event.cache_points else 0
    return replace(
        before,
        touched_at=event.at,
        ttl=event.ttl,
        prefix_hash=event.prefix_hash,
        tail=tail,
        tail_before=before.tail if tail != before.tail else before.tail_before,
        tokens=event.tokens,
        shown=shown,
        waiting=now_waiting(before.waiting, event, shown),
        rehydrated=_returned(before, event.rehydrated),
    )


def _returned(state: FoldState, artifacts: Sequence[ArtifactId]) -> dict[ArtifactId, int]:
    """When each artifact last came back, once these have in the current turn; the newest of them."""
    known = state.rehydrated
    if not artifacts:
        return known
    kept = {artifact: turn for artifact, turn in known.items() if artifact not in artifacts}
    now = {**kept, **dict.fromkeys(artifacts, state.turns)}
    return dict(list(now.items())[-REMEMBERED_MAX:])


def after_usage(before: FoldState, event: UsageRecorded) -> FoldState:
    """The model's ratio is moved towards what a request really had."""
    known = before.calibrations
    new = calibrated(known.get(event.model, Calibration()), event)
    return replace(before, calibrations={**known, event.model: new} if new.samples else known)


def after_restore(before: FoldState, blocks: Collection[BlockId]) -> FoldState:
    """These blocks may be shown again."""
    known = before.withheld
    if known.keys().isdisjoint(blocks):
        return before
    return replace(before, withheld={block: known[block] for block in known if block not in blocks})


def still_prepared(
    prepared: Collection[SummaryPrepared],
    events_since_cut: Collection[Recorded],
    hidden: Collection[int],
) -> tuple[SummaryPrepared, ...]:
    """The summaries without those by a model that had a block which is hidden now in its prompt, behind the
    range: of the range itself, their key tells.  `hidden`: versions."""
    asked = {event.id: version for version, event in events_since_cut}
    return tuple(
        event
        for event in prepared
        if not any(event.cut <= version < asked.get(event.id, 0) for version in hidden)
    )
