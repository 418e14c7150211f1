"""Ordinals: what tells the second note of a turn from the first in a path, also across a cut."""

from collections.abc import Sequence

from blocks import FoldState, path_stem
from render._group import Entry
from render._view import View


def ordinals_after(view: View, folded: Sequence[Entry], kept: Sequence[Entry]) -> dict[str, int]:
    """How far the blocks of a turn that goes on after the cut have been counted, by path stem.

    Of calls and results only those whose ids repeat: most never do, and there may be hundreds.
    """
    first = kept[0]
    turn = first.state.turn
    if first.block.turn != turn:
        return {}
    before = view.compaction.event.state if view.compaction else FoldState()
    ordinals = dict(before.ordinals) if before.turn == turn else {}
    for entry in folded:
        if entry.block.turn == turn:
            stem = path_stem(entry.block)
            ordinals[stem] = _last_ordinal(entry, stem)
    again = {path_stem(entry.block) for entry in kept}
    return {
        stem: ordinal
        for stem, ordinal in ordinals.items()
        if not stem.startswith("tc:") or ordinal > 1 or stem in again
    }


def _last_ordinal(entry: Entry, stem: str) -> int:
    return int(entry.path[len(stem) + 1 :]) if len(entry.path) > len(stem) else 1
