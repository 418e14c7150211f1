"""Rounds: where a response goes, and what came while its request was in flight.

A response belongs to the request that it answers.  Whatever was appended after that request had been
rendered was not in it, so it is shown after the response: it moves into the round that the response
begins.  A result of a call which the request had shown as interrupted comes late, and says so.

    log      prompt  [request]  steer  answer  result
    shown    prompt             answer  result  steer
"""

from collections.abc import Sequence
from typing import Final

import attrs
import msgspec

from blocks import Answered, Block, FoldState, RequestRendered, Waiting
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import response_of, verbatim
from render.view._registry import Registry

UNKNOWN: Final = "?"
"""In place of the hash of a request: it is one of several, and nobody said which."""
ANSWER_SECONDS: Final = 3600.0
"""A request that has had no answer for so long gets none."""
WAITING_MAX: Final = 16


def now_waiting(
    waiting: Sequence[Waiting], event: RequestRendered, shown: int
) -> tuple[Waiting, ...]:
    """The requests without an answer, once another is sent; sent twice, it is still one."""
    if not event.sent:
        return tuple(waiting)
    new = Waiting(shown=shown, sent=event.sent, at=event.at)
    still = [w for w in waiting if w.sent != new.sent and new.at - w.at <= ANSWER_SECONDS]
    if len(still) == WAITING_MAX:
        still[:2] = [msgspec.structs.replace(still[1], sent=UNKNOWN)]
    return (*still, new)


def answered_of(said: Answered | None, state: FoldState) -> tuple[Answered, tuple[Waiting, ...]]:
    """The request that a response answers, and those that still wait.

    It is the one that the response names, or else the newest.  Where several wait that is a guess, and
    so is each that is left: any of them may be the one that was answered.
    """
    waiting = state.waiting
    if said is not None:
        return said, tuple(each for each in waiting if each.sent != said.sent)
    if not waiting:
        return Answered(shown=state.shown, sent=""), ()
    newest, left = waiting[-1], waiting[:-1]
    sent = UNKNOWN if left else newest.sent
    guessed = (msgspec.structs.replace(each, sent=UNKNOWN) for each in left)
    return Answered(shown=newest.shown, sent=sent), tuple(guessed)


def joins(group: Group, block: Block, registry: Registry) -> bool:
    """Whether what the model said belongs to the round that is open.

    Blocks of one response do, even with a result of an earlier call of it in between (logs
    interleave parallel calls); without a response id, whatever follows directly.
    """
    if group.round == 0 or group.sealed:
        return False
    response = response_of(block)
    if response or group.response:
        return response == group.response
    return not registry.is_answered


def was_paused(entries: Sequence[Entry]) -> bool:
    """Whether the provider stopped in the middle of its own work, and nobody spoke since."""
    return bool(entries) and verbatim(entries[-1].block) is not None


def meanwhile(entries: Sequence[Entry], request: Answered) -> int:
    """Index of the first entry of the open group that came while a request was in flight.

    In logs that do not say what was sent, everything stays where it was shown before.
    """
    index = len(entries)
    while request.sent and index and entries[index - 1].version > request.shown:
        index -= 1
        if entries[index].place in (Place.RESPONSE, Place.RESULT):
            return len(entries)
    return index


def moved(entries: Sequence[Entry], number: int) -> tuple[Entry, ...]:
    """The entries as a part of another round."""
    return tuple(attrs.evolve(entry, round=number) for entry in entries)


def is_stale(request: Answered, changed: int) -> bool:
    """Whether something was appended or rewritten after the request of a response, as far as a log can
    tell that does not say what was sent; `changed`: the version at which it last was."""
    return not request.sent and 0 < request.shown < changed


def sealed(group: Group, shown: int) -> Group:
    """The group once a request has shown it as it was at a version."""
    if group.last <= shown:
        return attrs.evolve(group, sealed=shown)
    asked = {
        entry.pair
        for entry in group.placed(Place.RESPONSE)
        if entry.pair and entry.version <= shown
    }
    results = (entry for entry in group.placed(Place.RESULT) if entry.version > shown)
    late = {entry.version for entry in results if entry.pair in asked}
    if not late:
        return attrs.evolve(group, sealed=shown)
    entries = (
        attrs.evolve(entry, place=Place.LATE, pair="") if entry.version in late else entry
        for entry in group.entries
    )
    return attrs.evolve(group, entries=tuple(entries), sealed=shown)
