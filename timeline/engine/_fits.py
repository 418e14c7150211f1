"""Conditions of an append: its turn, and that it is not in the log yet.

After each version conflict they are checked again, on the log with the other writers' events.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from blocks import BlockAppended, CallId, Event, OpaqueBlock, TurnId
from render import View
from timeline.engine._engine import Fit


def this_turn(view: View) -> TurnId:
    return view.turn or TurnId("t1")


def new_turn(view: View) -> TurnId:
    return view.new_turn


def turn_of(view: View, call_id: CallId) -> TurnId:
    return view.turn_of(call_id) or this_turn(view)


def in_turn(turn: Callable[[View], TurnId], check: Callable[[View], None] | None = None) -> Fit:
    """A `Fit` that appends blocks in the turn that `turn` finds in the view, unless `check` raises."""

    def fit(view: View, events: Sequence[Event]) -> Sequence[Event]:
        if check is not None:
            check(view)
        return [_moved(event, turn(view)) for event in events]

    return fit


def _moved(event: Event, turn: TurnId) -> Event:
    if not isinstance(event, BlockAppended) or event.block.turn == turn:
        return event
    if isinstance(event.block, OpaqueBlock):
        return event
    return replace(event, block=replace(event.block, turn=turn))
