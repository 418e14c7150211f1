"""Clipping: shortening tool results that have had their turn, or that would not fit.

    first sight    A new result is shown whole if the request then fits: as it is, or after the compaction that is
                   due with it. Only what would break the window is cut at once, small results last.
    later          It stays whole while the provider's cache is warm. The next compaction cuts what it keeps of the
                   results that a request has shown to their share (`clip_ratio`); a prune hides old ones.

Cutting what was not shown yet rewrites no cached prefix, and no thinking depends on it: it concerns only the newest
round. It is recorded like any hide, and the full content stays in the log.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from blocks import BlocksHidden, EventId, Hidden, ToolResult, UserAttachment, standing_of, text_of
from render.policy._context import Context
from render.stages._budget import account, fitting_of, fixed_tokens, threshold_of
from render.view._fold import decide
from render.view._group import Entry, Group
from render.view._view import View

HEAD_SHARE: Final = 0.7
"""The share of the kept text that is taken from the beginning."""
ROOM_SHARE: Final = 0.5
"""The share of the room that a result gets if it does not fit the room, so that some is left for the next round."""
INDEX_SHARE: Final = 0.5
"""The share of its index that a compaction keeps at least when it makes room for a new result."""


def clip_oversized(view: View, context: Context) -> View:
    """Clip new results for which neither the window nor a compaction has room."""
    if not context.policy.compacts or not view.groups:
        return view
    if account(view, context).total <= threshold_of(context):
        return view
    return _clipped_to(view, context, _room(view, context))


def clip_misfits(view: View, context: Context) -> View:
    """Clip new results for which the compaction that was due did not make enough room."""
    total = account(view, context).total
    if not context.policy.compacts or not view.groups or total <= context.limit:
        return view
    return _clipped_to(view, context, _free(view, context))


def _clipped_to(view: View, context: Context, room: int) -> View:
    """The view with its new results clipped, unless they have room; `room` is what would be left beside them."""
    new = list(_unseen(view.groups[-1], context))
    room += sum(tokens for _, tokens in new)
    standing = sum(tokens for entry, tokens in new if standing_of(entry.source))
    if standing <= room:  # instructions are whole as long as they fit alone
        room -= standing
        new = [(entry, tokens) for entry, tokens in new if not standing_of(entry.source)]
    if sum(tokens for _, tokens in new) <= room:
        return view
    sizes = [tokens for _, tokens in new]
    each = max(_each(sizes, int(ROOM_SHARE * room)), _each(sizes, 2 * share_of(context)))
    cuts = [clipped(entry, tokens, each, context) for entry, tokens in new if tokens > each]
    if not cuts:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(cuts), reason="clipped")
    return decide(view, event)


def share_of(context: Context) -> int:
    """Tokens of a result that a compaction keeps after a request has shown it."""
    return int(context.policy.clip_ratio * context.capacity)


def _unseen(group: Group, context: Context) -> Iterator[tuple[Entry, int]]:
    """The results and attachments of the newest round that no request has shown, with their tokens."""
    piece = context.encoder.shown(group)
    for entry in group.entries:
        is_content = isinstance(entry.block, ToolResult | UserAttachment)
        if is_content and entry.replacement is None and entry.version > group.sealed:
            yield entry, piece.tokens_of(entry.version)


def _room(view: View, context: Context) -> int:
    """Tokens, before calibration, by which the request is below what it may have: now, or after a compaction of all
    older rounds; negative if it is above."""
    sizes, policy, now = account(view, context), context.policy, _free(view, context)
    if len(view.groups) == 1:
        return now
    head = policy.user_ratio + policy.digest_ratio + INDEX_SHARE * policy.index_ratio
    newest = context.encoder.shown(view.groups[-1]).tokens
    left = fixed_tokens(context) + sizes.standing + int(head * context.capacity) + newest
    return max(now, int((fitting_of(context) - sizes.prefix) / sizes.ratio - left))


def _free(view: View, context: Context) -> int:
    """Tokens, before calibration, by which the request is below the trigger; negative if it is above."""
    sizes = account(view, context)
    return int((threshold_of(context) - sizes.total) / sizes.ratio)


def _each(sizes: Sequence[int], room: int) -> int:
    """The largest size that each may have so that all together have room; what small ones do not need goes to the
    large ones."""
    left, waiting = max(room, 0), sorted(sizes)
    while waiting and waiting[0] <= left // len(waiting):
        left -= waiting.pop(0)
    return left // len(waiting) if waiting else max(sizes, default=0)


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
