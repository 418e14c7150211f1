"""Cut points: where a compaction may separate what is folded from what is kept.

The rules, in the order in which they are applied:

1. candidate   A cut may be before a user prompt, an assistant completion, a tool call, a turn header,
               or any other block whose author is not the system or a tool; never before a tool
               result or a summary.
2. counted     The tokens of candidates and of tool results count.
3. selection   Walk back from the end, adding counted blocks, until `keep` tokens are reached. Take
               the first candidate at or after that block. Then step back until the block before
               the cut is a counted block (or there is none: then it is the summary).

                   prompt  call  result  call  result  notice  text
                                           └── keep reached here: not a candidate
                                                           └── first candidate at or after
                                                   └── step back: a notice is not counted

4. legal       No kept result answers a folded call, no open call is folded, and the calls of one
               round stay together with the thinking that led to them, in whatever order their
               results came: providers refuse calls without it, or it without them. If the
               selected cut is not legal, the nearest legal one is taken, older ones first.
5. turn start  A cut before a turn header or a block by the user keeps its turn whole; any other
               cut splits a turn.
"""

from collections.abc import Sequence

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    OpaqueBlock,
    RangeSummary,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
)
from render.view._group import Entry, Place
from render.view._provider_blocks import verbatim


def is_candidate(block: Block) -> bool:
    """Whether a kept range may begin with this block."""
    match block:
        case ToolResult() | RangeSummary():
            return False
        case UserPrompt() | AssistantCompletion() | ToolCall() | TurnHeader():
            return True
        case OpaqueBlock():
            return block.author not in {"", "system", "tool"}
        case _:
            return block.author in {"user", "assistant"}


def is_counted(block: Block) -> bool:
    """Whether the block's tokens count towards the tokens to keep."""
    return isinstance(block, ToolResult) or is_candidate(block)


def is_turn_start(block: Block) -> bool:
    """Whether a cut before this block leaves its turn whole."""
    return isinstance(block, TurnHeader) or block.author == "user"


def find_cut(entries: Sequence[Entry], tokens: Sequence[int], keep: int) -> int | None:
    """Index of the first entry to keep (1..len(entries)-1), or None when there is nothing to fold.

    `tokens[i]` is the size of `entries[i]` as it is shown.
    """
    start = _walk_back(entries, tokens, keep)
    if start is None:
        return None
    after = range(start, len(entries))
    candidate = next((i for i in after if is_candidate(entries[i].block)), None)
    if candidate is None:
        candidate = next((i for i in reversed(range(start)) if is_candidate(entries[i].block)), 0)
    legal = _legal(entries)
    cut = _step_back(entries, candidate)
    return cut if cut and legal[cut] else _nearest(entries, candidate, legal)


def turns_cut(entries: Sequence[Entry], turns: int) -> int | None:
    """Index of the first entry to keep so that the newest `turns` stay whole, or None when there are no
    more. If that cut is not legal, the nearest older legal one."""
    starts: list[int] = []
    for index, entry in enumerate(entries):
        # A late result belongs to the turn of its call, but does not start that turn again.
        if isinstance(entry.block, ToolResult):
            continue
        if not starts or entry.block.turn != entries[starts[-1]].block.turn:
            starts.append(index)
    if len(starts) <= turns:
        return None
    legal = _legal(entries)
    return next((cut for cut in range(starts[-turns], 0, -1) if legal[cut]), None)


def is_legal(entries: Sequence[Entry], cut: int) -> bool:
    """Whether the kept range may begin with this entry."""
    return 0 < cut < len(entries) and _legal(entries)[cut]


def latest_cut(entries: Sequence[Entry]) -> int | None:
    """The newest legal cut, which folds all but the last round."""
    legal = _legal(entries)
    indices = reversed(range(1, len(entries)))
    return next((i for i in indices if legal[i] and is_candidate(entries[i].block)), None)


def _walk_back(entries: Sequence[Entry], tokens: Sequence[int], keep: int) -> int | None:
    kept = 0
    for index in reversed(range(len(entries))):
        if is_counted(entries[index].block):
            kept += tokens[index]
            if kept >= keep:
                return index
    return None


def _step_back(entries: Sequence[Entry], cut: int) -> int:
    while cut > 0 and not is_counted(entries[cut - 1].block):
        cut -= 1
    return cut


def _nearest(entries: Sequence[Entry], cut: int, legal: Sequence[bool]) -> int | None:
    """The nearest legal cut, older ones first; 0 is excluded, because it would fold nothing."""
    for index in (*reversed(range(1, cut + 1)), *range(cut + 1, len(entries))):
        if is_candidate(entries[index].block):
            stepped = _step_back(entries, index)
            for found in (stepped, index):
                if found and legal[found]:
                    return found
    return None


def _legal(entries: Sequence[Entry]) -> list[bool]:
    """For each index, whether the kept range may begin there."""
    legal = [True] * len(entries)
    checked = 0  # spans may overlap; each index is visited once
    for first, last in sorted(_spans(entries)):
        for index in range(max(first, checked) + 1, min(last + 1, len(entries))):
            legal[index] = False
        checked = max(checked, last)
    return legal


def _spans(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Ranges of indices that no cut may enter, except before the first: from the first thinking or call of a round that
    has calls to its last result, including late results."""
    spans: dict[int, tuple[int, int]] = {}
    thoughts: dict[int, int] = {}
    rounds: dict[str, int] = {}
    newest = max((entry.round for entry in entries), default=0)
    answered = {entry.pair for entry in entries if entry.place is Place.RESULT}
    for index, entry in enumerate(entries):
        block = entry.block
        if isinstance(block, AssistantThinking):
            thoughts.setdefault(entry.round, index)
        elif isinstance(block, ToolCall) or verbatim(block) is not None:
            begin = thoughts.get(entry.round, index)
            first, last = spans.get(entry.round, (begin, index))
            is_open = False
            if isinstance(block, ToolCall):
                rounds[block.call_id] = entry.round
                is_open = entry.round == newest and entry.pair not in answered
            spans[entry.round] = (first, max(last, len(entries) if is_open else index))
        elif isinstance(block, ToolResult) and entry.place is not Place.ORPHAN:
            asked = rounds.get(block.call_id)
            if asked is not None:
                first, last = spans[asked]
                spans[asked] = (first, max(last, index))
    return list(spans.values())
