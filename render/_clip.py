"""Clipping: one result, or one round's results, that alone would crowd out everything else.

It happens at the first render that would show them, so no cached prefix is ever rewritten by it;
it is recorded like any hide, and the full content stays in the log.
"""

from blocks import BlocksHidden, EventId, Hidden, ToolResult, UserAttachment, text_of
from render._context import Context
from render._fold import decide
from render._group import Entry, Group
from render._view import View
from render.anthropic import Encoder

HEAD_SHARE = 0.7
"""Of what is kept, the part that comes from the beginning."""


def clip_oversized(view: View, context: Context) -> View:
    """Clip what no request has shown yet and is larger than its share of the limit."""
    if not view.groups:
        return view
    encoder = Encoder(counter=context.counter, keep_thinking=context.keep_thinking)
    share = int(context.policy.clip_ratio * context.limit)
    hidden: list[Hidden] = []
    for group in reversed(view.groups):
        if group.sealed and group.last <= group.sealed:
            break
        hidden += _oversized(group, encoder, context, share)
    if not hidden:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(hidden), reason="clipped")
    return decide(view, event)


def _oversized(group: Group, encoder: Encoder, context: Context, share: int) -> list[Hidden]:
    piece = encoder.shown(group)
    if piece.tokens <= share:
        return []
    new = [
        (entry, piece.tokens_of(entry.version))
        for entry in group.entries
        if isinstance(entry.block, ToolResult | UserAttachment)
        and entry.replacement is None
        and entry.version > group.sealed
    ]
    each = _fair_share([tokens for _, tokens in new], share)
    return [
        Hidden(block=entry.block.id, replacement=clipped(entry, tokens, each, context))
        for entry, tokens in new
        if tokens > each
    ]


def _fair_share(sizes: list[int], share: int) -> int:
    """The largest size that each may keep so that no one exceeds the share and all of them
    together twice the share; small ones leave what they do not need to the large."""
    left, waiting = 2 * share, sorted(sizes)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return min(share, left // len(waiting)) if waiting else share


def clipped(entry: Entry, tokens: int, tokens_max: int, context: Context) -> str:
    """The head and tail of a block's text, with a marker between them that names the way back."""
    text = text_of(entry.block)
    return cut_text(text, tokens, tokens_max, entry.path, context)


def cut_text(text: str, tokens: int, tokens_max: int, path: str, context: Context) -> str:
    """`text` in at most `tokens_max` tokens: head, marker, tail."""
    marker = f"\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n"
    room = tokens_max - context.counter.count(marker) - 20
    keep = int(len(text) * max(room, 0) / max(tokens, 1))
    while True:
        head, tail = (
            text[: int(keep * HEAD_SHARE)],
            text[len(text) - int(keep * (1 - HEAD_SHARE)) :],
        )
        short = head + marker + tail
        if keep < 16 or context.counter.count(short) <= tokens_max:  # noqa: PLR2004 -- nothing left to cut
            return short if keep >= 16 else marker.strip()  # noqa: PLR2004 -- same
        keep = keep * 4 // 5
