"""Rounds: where a response goes, and what came while its request was in flight.

A response belongs to the request that it answers.  Whatever was appended after that request had been
rendered was not in it, so it is shown after the response: it moves into the round that the response
begins.  A result of a call which the request had shown as interrupted comes late, and says so.

    log      prompt  [request]  steer  answer  result
    shown    prompt             answer  result  steer
"""

from collections.abc import Sequence

import attrs

from blocks import Answered, Block
from render.view._group import Entry, Group, Place
from render.view._provider_blocks import response_of, verbatim
from render.view._registry import Registry


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
