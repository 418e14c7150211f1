"""The visible slice: the latest summary with what it carried, and everything it did not fold."""

from bisect import bisect_left
from operator import attrgetter

import attrs

from render.view._group import Group
from render.view._memo import GroupMemo
from render.view._view import View


@attrs.frozen(kw_only=True)
class Shown:
    """What the model is going to see, still as blocks: the stages after the decisions."""

    groups: tuple[Group, ...]
    turn_start: int
    """Version of the first block of the current turn."""
    tail: int
    """Version of the block that carried the last request's tail cache point; 0: none."""
    tail_before: int
    """The same of the latest request that had another tail; 0: none."""
    rounds: int
    """Rounds in `groups`."""
    group_memo: GroupMemo = attrs.field(repr=False)
    """Of the view; see there."""


def slice_visible(view: View) -> Shown:
    """From the latest summary onward; the view holds nothing older."""
    head = (view.compaction.head,) if view.compaction else ()
    groups = view.groups
    if view.summarised:
        head, groups = (), _since(groups, view.summarised)
    unopened = sum(1 for group in groups[:1] if not group.round)  # only the first may be
    return Shown(
        groups=(*head, *groups),
        turn_start=view.turn_start,
        tail=view.state.tail,
        tail_before=view.state.tail_before,
        rounds=len(groups) - unopened,
        group_memo=view.group_memo,
    )


def _since(groups: tuple[Group, ...], version: int) -> tuple[Group, ...]:
    """What begins with the block of this version."""
    index = bisect_left(groups, version, key=attrgetter("last"))
    first, later = groups[index], groups[index + 1 :]
    return (first.memo(("since", version), lambda: _from(first, version)), *later)


def _from(group: Group, version: int) -> Group:
    return attrs.evolve(group, entries=tuple(e for e in group.entries if e.version >= version))
