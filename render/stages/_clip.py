"""Clipping: shortening new results that would otherwise take too much of the window.

A result is clipped at the first render that would show it, so clipping never rewrites a cached prefix. It
is recorded like any hide, and the full content stays in the log.

    share    what one result may always have; all results of a round may have twice that (`clip_ratio`)
    room     what is free below the trigger after all new results are cut to their share (`clip_room`)

A result above its share is shown whole if the room allows it, small ones first. Otherwise it is cut to its
share, not to the room, so that room is left for the next round.
"""

from collections.abc import Sequence

import attrs

from blocks import BlocksHidden, EventId, Hidden, ToolResult, UserAttachment, text_of
from render.policy._context import Context
from render.stages._budget import account, threshold_of
from render.view._fold import decide
from render.view._group import Entry
from render.view._view import View

HEAD_SHARE = 0.7
"""The share of the kept text that is taken from the beginning."""


def clip_oversized(view: View, context: Context) -> View:
    """Clip results that no request has shown yet, and that are larger than their share and than the free room."""
    large = _large(view, context) if context.policy.compacts else []
    if not large:
        return view
    room = _room(view, context, large)
    hidden: list[Hidden] = []
    for results in large:  # newest first: the model needs them most
        whole = results.whole(room)
        room -= sum(results.excess(tokens) for _, tokens in results.new if tokens <= whole)
        hidden += [
            clipped(entry, tokens, results.each, context)
            for entry, tokens in results.new
            if tokens > whole
        ]
    if not hidden:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(hidden), reason="clipped")
    return decide(view, event)


@attrs.frozen
class _Results:
    """The new results of a group, with their tokens and the size that each may always have."""

    new: tuple[tuple[Entry, int], ...]
    each: int

    def excess(self, tokens: int) -> int:
        """The tokens of a result beyond its share."""
        return max(tokens - self.each, 0)

    def whole(self, room: int) -> int:
        """The size up to which results are shown whole, so that together they fit the room."""
        whole = self.each
        for tokens in sorted(tokens for _, tokens in self.new):
            room -= self.excess(tokens)
            if room < 0:
                break
            whole = max(whole, tokens)
        return whole


def _large(view: View, context: Context) -> list[_Results]:
    """The groups that are larger than a share and have new results, the newest first."""
    encoder = context.encoder
    share = int(context.policy.clip_ratio * context.limit)
    found: list[_Results] = []
    for group in reversed(view.groups):
        if group.sealed and group.last <= group.sealed:
            break
        piece = encoder.shown(group)
        if piece.tokens <= share:
            continue
        new = tuple(
            (entry, piece.tokens_of(entry.version))
            for entry in group.entries
            if isinstance(entry.block, ToolResult | UserAttachment)
            and entry.replacement is None
            and entry.version > group.sealed
        )
        if new:
            found.append(_Results(new, _fair_share([tokens for _, tokens in new], share)))
    return found


def _room(view: View, context: Context, large: Sequence[_Results]) -> int:
    """Tokens that are free below the trigger when everything new is cut to its share."""
    sizes = account(view, context)
    excess = sum(results.excess(tokens) for results in large for _, tokens in results.new)
    free = (threshold_of(context) - sizes.total) / sizes.ratio + excess
    return int(context.policy.clip_room * free)


def _fair_share(sizes: list[int], share: int) -> int:
    """The largest size that each may keep so that none exceeds the share, and all together do not exceed twice the
    share; room that small ones do not need goes to the large ones."""
    left, waiting = 2 * share, sorted(sizes)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return min(share, left // len(waiting)) if waiting else share


def clipped(entry: Entry, tokens: int, tokens_max: int, context: Context) -> Hidden:
    """The head and tail of a block's text, with a marker between them that names its path; for a confidential result
    only the lengths of head and tail."""
    text, block = text_of(entry.opened or entry.block), entry.block.id
    head, marker, tail = _cut(text, tokens, tokens_max, entry.path, context)
    if entry.opened is not None:
        return Hidden(block=block, replacement=marker, head=len(head), tail=len(tail))
    return Hidden(block=block, replacement=head + marker + tail)


def cut_text(text: str, tokens: int, tokens_max: int, path: str, context: Context) -> str:
    """`text` in at most `tokens_max` tokens: head, marker, tail."""
    return "".join(_cut(text, tokens, tokens_max, path, context))


def _cut(
    text: str, tokens: int, tokens_max: int, path: str, context: Context
) -> tuple[str, str, str]:
    marker = f"\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n"
    room = tokens_max - context.counter.count(marker) - 20
    keep = int(len(text) * max(room, 0) / max(tokens, 1))
    while True:
        head, tail = (
            text[: int(keep * HEAD_SHARE)],
            text[len(text) - int(keep * (1 - HEAD_SHARE)) :],
        )
        if keep < 16:  # noqa: PLR2004 -- nothing left to cut
            return "", marker.strip(), ""
        if context.counter.count(head + marker + tail) <= tokens_max:
            return head, marker, tail
        keep = keep * 4 // 5
