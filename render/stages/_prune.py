"""Pruning by time to live: hiding old tool traffic while the provider's cache is cold.

While the cache is warm, history is not rewritten: every request extends the last one. Once the cache is
cold, the whole prompt is paid for again in any case, so rewriting it costs nothing extra. All pruning is
then done in one batch and recorded as one event.
"""

from collections.abc import Iterator

from blocks import (
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    EventId,
    Hidden,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    is_sealed,
    text_of,
)
from blocks.formats import lays_down
from render.policy._context import Context
from render.stages._budget import is_cold
from render.view._fold import decide
from render.view._group import Entry, Group, Place
from render.view._view import View

NOTICE = (
    "Older tool results were hidden to save space. Where a result says so, its content can be read "
    "back by the path it names."
)
HINT_CHARACTERS = 120


def prune_expired(view: View, context: Context) -> View:
    """Hide old, large tool traffic in one batch; only while the cache is cold, and only if it saves enough."""
    if not view.groups or not context.policy.compacts or not is_cold(view, context):
        return view
    encoder = context.encoder
    hidden: list[Hidden] = []
    saved = 0
    for group, entry, is_far in _aged(view, context):
        tokens = encoder.shown(group).tokens_of(entry.version)
        is_small = tokens <= context.policy.prune_block_tokens
        if is_small or not _may_hide(entry, view.turn, context, is_far=is_far):
            continue
        text = stub(entry, tokens)
        hidden.append(Hidden(block=entry.block.id, replacement=text))
        saved += tokens - context.counter.count(text)
    if saved < max(context.policy.prune_tokens_min, 1):
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=tuple(hidden), reason="expired")
    return _tell(decide(view, event), context)


def _aged(view: View, context: Context) -> Iterator[tuple[Group, Entry, bool]]:
    """Entries outside the intact turns and rounds, newest first; True if they are outside the visible ones,
    too."""
    policy = context.policy
    turns, turn = 0, view.turn
    for group in reversed(view.groups):
        rounds = view.state.rounds - group.round
        for entry in reversed(group.entries):
            if entry.block.turn != turn:
                turns, turn = turns + 1, entry.block.turn
            if turns >= policy.turns_intact or rounds >= policy.rounds_intact:
                yield (
                    group,
                    entry,
                    turns >= policy.turns_visible or rounds >= policy.rounds_visible,
                )


def _may_hide(entry: Entry, turn: TurnId, context: Context, *, is_far: bool) -> bool:
    """Whether the entry may be pruned: never user texts, notes and plans; calls only if they are far back.

    The thinking of the current turn stays, because the thinking of a tool loop must be sent completely or
    not at all; all thinking stays if the provider wants it with its calls.
    """
    if entry.replacement is not None:
        return False
    match entry.block:
        case ToolResult():
            return entry.place is Place.RESULT and not lays_down(entry.block)
        case UserAttachment():
            return not entry.block.standing
        case AssistantThinking():
            return entry.block.turn != turn and "paired" not in context.limits.thinking
        case ToolCall():
            return is_far
        case _:
            return False


def stub(entry: Entry, tokens: int) -> str:
    """The short text that replaces a block: a hint, and its path."""
    block = entry.block
    if isinstance(block, AssistantThinking):
        return ""
    hint = "" if is_sealed(block) else _hint(block)
    about = f" starting {hint!r}" if hint else ""
    return f"[hidden: {tokens} tokens{about}; read back at {entry.path}]"


def _hint(block: Block) -> str:
    text = text_of(block).strip()
    line = text.split("\n", 1)[0].strip()
    return line if len(line) <= HINT_CHARACTERS else line[:HINT_CHARACTERS] + "…"


def _tell(view: View, context: Context) -> View:
    """Tell the model once how to read hidden blocks."""
    told = any(
        isinstance(entry.block, SystemMessage) and entry.block.text == NOTICE
        for entry in view.entries
    )
    if told:
        return view
    block = SystemMessage(id=BlockId(f"notice.{view.version + 1}"), turn=view.turn, text=NOTICE)
    return decide(view, BlockAppended(id=EventId(""), at=context.now, block=block))
