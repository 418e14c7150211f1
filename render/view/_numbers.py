"""How events change the fold's state."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from blocks import (
    Answered,
    ArtifactId,
    BlockId,
    Calibration,
    FoldState,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    TokensCounted,
    UsageRecorded,
    Waiting,
)
from render.view._calibration import calibrated

REMEMBERED_MAX: Final = 32
"""Number of artifacts for which the fold remembers when they came back: more than any cool-down needs."""
UNKNOWN: Final = "?"
"""Hash of a request when it is unknown which of several requests it was."""
ANSWER_SECONDS: Final = 3600.0
"""Seconds after which a request without an answer is assumed to get none."""
WAITING_MAX: Final = 16


def after_request(before: FoldState, event: RequestRendered, shown: int) -> FoldState:
    """The state after a request of the view at version `shown` was handed out."""
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
    """When each artifact last came back, including these in the current turn; only the newest are kept."""
    known = state.rehydrated
    if not artifacts:
        return known
    kept = {artifact: turn for artifact, turn in known.items() if artifact not in artifacts}
    now = {**kept, **dict.fromkeys(artifacts, state.turns)}
    return dict(list(now.items())[-REMEMBERED_MAX:])


def now_waiting(
    waiting: Sequence[Waiting], event: RequestRendered, shown: int
) -> tuple[Waiting, ...]:
    """The requests without an answer, after another one was sent; a request that is sent twice counts once."""
    if not event.sent:
        return tuple(waiting)
    new = Waiting(shown=shown, sent=event.sent, at=event.at)
    still = [w for w in waiting if w.sent != new.sent and new.at - w.at <= ANSWER_SECONDS]
    if len(still) == WAITING_MAX:
        still[:2] = [replace(still[1], sent=UNKNOWN)]
    return (*still, new)


def answered_of(said: Answered | None, state: FoldState) -> tuple[Answered, tuple[Waiting, ...]]:
    """The request that a response answers, and those still waiting for an answer.

    It is the request that the response names, or else the newest. If several wait, that is a guess, and any
    of the remaining ones may be the real one; their hashes are then `UNKNOWN`.
    """
    waiting = state.waiting
    if said is not None:
        return said, tuple(each for each in waiting if each.sent != said.sent)
    if not waiting:
        return Answered(shown=state.shown, sent=""), ()
    newest, left = waiting[-1], waiting[:-1]
    sent = UNKNOWN if left else newest.sent
    guessed = (replace(each, sent=UNKNOWN) for each in left)
    return Answered(shown=newest.shown, sent=sent), tuple(guessed)


def is_stale(request: Answered, changed: int) -> bool:
    """Whether something was appended or rewritten after the request of a response, as far as a log without hashes of
    requests can tell; `changed` is the version of the last such change."""
    return not request.sent and 0 < request.shown < changed


def after_usage(before: FoldState, event: UsageRecorded | TokensCounted) -> FoldState:
    """The calibration of a model, corrected by the real size of a request."""
    known = before.calibrations
    new = calibrated(known.get(event.model, Calibration()), event)
    return replace(before, calibrations={**known, event.model: new} if new.samples else known)


def after_restore(before: FoldState, blocks: Collection[BlockId]) -> FoldState:
    """The state after these blocks may be shown again."""
    known = before.withheld
    if known.keys().isdisjoint(blocks):
        return before
    return replace(before, withheld={block: known[block] for block in known if block not in blocks})


def still_prepared(
    prepared: Collection[SummaryPrepared],
    events_since_cut: Collection[Recorded],
    hidden: Collection[int],
) -> tuple[SummaryPrepared, ...]:
    """The prepared summaries, without those whose model saw a block after the range that is hidden now; for blocks of
    the range itself, the key differs. `hidden` has versions."""
    asked = {event.id: version for version, event in events_since_cut}
    return tuple(
        event
        for event in prepared
        if not any(event.cut <= version < asked.get(event.id, 0) for version in hidden)
    )
