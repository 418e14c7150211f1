"""Thinking blocks: whole and verbatim, or not at all.

Two rules of the provider meet here (its documentation on thinking and on preserved thinking):

* within the current tool loop, thinking comes back complete or the whole loop's goes; where it has to
  lead the message whose calls are answered (`Model.thinking_leads`) it stays, and cuts respect it;
* on models that bind a signature to everything before it (`Model.thinking_bound`), thinking that
  stands behind a rewrite is refused, so it goes; once gone it never comes back, hence an event.
"""

from collections.abc import Iterator

from blocks import AssistantThinking, BlocksHidden, EventId, Hidden
from render.policy._context import Context
from render.stages._prefix import prefix_of
from render.stages._sent import misplaced
from render.view._fold import decide
from render.view._group import Entry, Group
from render.view._view import View
from render.view._visible import slice_visible


def strip_unbound(view: View, context: Context) -> View:
    """Hide the thinking that the last rewrite, or other tools or another system, made unusable.

    What was thought behind such thinking was bound to it, so it goes too, until the rest holds.
    """
    if not context.keep_thinking:
        return view
    while unusable := dict.fromkeys(entry.block.id for entry in _unusable(view, context)):
        hidden = tuple(Hidden(block=block) for block in unusable)
        event = BlocksHidden(id=EventId(""), at=context.now, hidden=hidden, reason="unsigned")
        view = decide(view, event)
    return view


def _unusable(view: View, context: Context) -> Iterator[Entry]:
    """Thinking that the provider would refuse where it stands now."""
    if context.model.thinking_bound:
        shown = slice_visible(view)
        yield from misplaced(shown, context.encoder.pieces(shown), context)
    if context.model.thinking_bound or view.rewritten:
        yield from _behind_rewrite(view, context)


def _behind_rewrite(view: View, context: Context) -> Iterator[Entry]:
    """Thinking behind a rewrite, where it is bound; that of a loop which the cut went through."""
    is_split = view.compaction is not None and not context.model.thinking_leads
    split = view.compaction.event.summary.split_turn_id if is_split and view.compaction else None
    cut_at = view.compaction.version if view.compaction else 0
    elsewhere = _is_elsewhere(view, context)
    for entries in view.group_memo.each("thinking", view.groups, _thinking):
        for entry in entries:
            unbound = elsewhere or entry.unbound or entry.version < cut_at
            halved = entry.version < cut_at and entry.block.turn == split
            if (unbound and context.model.thinking_bound) or halved:
                yield entry


def _is_elsewhere(view: View, context: Context) -> bool:
    """Whether system and tools are not what they were when the model thought."""
    before = view.state.prefix_hash
    return bool(before) and before != prefix_of(context).digest


def _thinking(group: Group) -> tuple[Entry, ...]:
    """The thinking of a group that is still shown."""
    return tuple(
        entry
        for entry in group.entries
        if isinstance(entry.block, AssistantThinking) and entry.replacement is None
    )
