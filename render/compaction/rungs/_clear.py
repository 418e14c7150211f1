"""Clear: a result is replaced by a placeholder, if its durability allows it.

ephemeral        a placeholder
anchoring        a placeholder with its key fields and excerpts
replayable       a placeholder, if its source is known to be unchanged
non-replayable   never
"""

from collections.abc import Mapping

from blocks import is_sealed
from render.compaction.rungs._plan import Clear
from render.compaction.rungs._scope import Drift, Found, RungScope, excerpts_of, placeholder


class ClearRung:
    """Proposes to clear every result before the tail that may be cleared and saves tokens, in one batch."""

    name = "clear"

    def propose(self, scope: RungScope) -> list[Clear]:
        """One `Clear` for each such result."""
        results = list(scope.results())
        if not results:
            return []
        used, drift = scope.used(), scope.drift()
        found = (_proposal(found, used, drift, scope) for found in results)
        return [proposal for proposal in found if proposal is not None]


def _proposal(
    found: Found, used: Mapping[str, int], drift: Drift, scope: RungScope
) -> Clear | None:
    policy, count = scope.context.policy, scope.context.counter.count
    if found.tokens <= policy.prune_block_tokens:
        return None
    durability = found.durability
    is_stale = durability == "replayable" and drift.has_changed(found.entry)
    if durability == "non-replayable" or is_stale:
        return None
    text = placeholder(found, policy.pointer_tokens, count)
    if durability == "anchoring":
        quoted = excerpts_of(found.entry, used, policy.pointer_tokens, scope.reader)
        text = text if is_sealed(found.result) else f"{text}\n{quoted}"
    made = scope.clear(found, text, f"{durability}, {found.tokens} tokens")
    return made if made.tokens_freed > 0 else None
