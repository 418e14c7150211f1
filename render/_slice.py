"""The visible slice: the latest summary with what it carried, and everything it did not fold."""

import attrs

from render._group import Group
from render._shelf import Shelf
from render._view import View


@attrs.frozen(kw_only=True)
class Shown:
    """What the model is going to see, still as blocks: the stages after the decisions."""

    groups: tuple[Group, ...]
    turn_start: int
    """Version of the first block of the current turn."""
    tail: int
    """Version of the block that carried the last request's tail cache point; 0: none."""
    rounds: int
    """Rounds in `groups`."""
    shelf: Shelf = attrs.field(repr=False)
    """Of the view; see there."""


def slice_visible(view: View) -> Shown:
    """From the latest summary onward; the view holds nothing older."""
    head = (view.compaction.head,) if view.compaction else ()
    unopened = sum(1 for group in view.groups[:1] if not group.round)  # only the first may be
    return Shown(
        groups=(*head, *view.groups),
        turn_start=view.turn_start,
        tail=view.state.tail,
        rounds=len(view.groups) - unopened,
        shelf=view.shelf,
    )
