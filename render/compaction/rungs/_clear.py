"""Clear: a result becomes its envelope, as far as its durability allows.

ephemeral        a placeholder
anchoring        a placeholder, its key fields, and excerpts
replayable       a placeholder, while its source is verified to be unchanged
non-replayable   never
"""

from collections.abc import Mapping, Sequence

from blocks import BlocksHidden, EventId, Hidden
from render.compaction.rungs._excerpts import excerpts_of
from render.compaction.rungs._freshness import Drift
from render.compaction.rungs._placeholder import placeholder
from render.compaction.rungs._plan import Clear
from render.compaction.rungs._scope import Found, RungScope
from render.policy._context import Context
from render.view._fold import decide
from render.view._view import View


def propose(scope: RungScope) -> list[Clear]:
    """Every result before the tail that may be cleared and is worth it, all in one batch."""
    results = list(scope.results())
    if not results:
        return []
    used, drift = scope.used(), scope.drift()
    found = (_proposal(found, used, drift, scope.context) for found in results)
    return [proposal for proposal in found if proposal is not None]


def _proposal(
    found: Found, used: Mapping[str, int], drift: Drift, context: Context
) -> Clear | None:
    if found.tokens <= context.policy.prune_block_tokens:
        return None
    durability = found.durability
    is_stale = durability == "replayable" and drift.has_changed(found.entry)
    if durability == "non-replayable" or is_stale:
        return None
    count = context.counter.count
    text = placeholder(found, context.policy.pointer_tokens, count)
    if durability == "anchoring":
        text = "\n".join(
            [text, excerpts_of(found.entry, used, context.policy.pointer_tokens, count)]
        )
    freed = found.tokens - context.limits.result_tokens - count(text)
    if freed <= 0:
        return None
    return Clear(
        blocks=(found.entry.block.id,),
        first=found.entry.version,
        last=found.entry.version,
        turns=(found.result.turn,),
        tokens_freed=freed,
        reason=f"{durability}, {found.tokens} tokens",
        replacement=text,
    )


def apply(view: View, proposals: Sequence[Clear], context: Context) -> View:
    """The view with placeholders."""
    hidden = tuple(Hidden(block=p.blocks[0], replacement=p.replacement) for p in proposals)
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=hidden, reason="cleared")
    return decide(view, event)
