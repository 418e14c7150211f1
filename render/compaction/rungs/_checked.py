"""A user's own rung: its proposals are checked before they are applied.

    data       proposals are of the four kinds, and equal after a round trip through JSON
    before     they name blocks before the verbatim tail, each once, in log order
    whole      a call is dropped together with its result, and a result with its call
    allowed    they name no user text, note, plan or open call, and nothing that is already hidden
    smaller    the request is shorter afterwards

If one of these rules is broken, all proposals of the rung are ignored, and one error says why.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import attrs
import msgspec

from blocks import (
    ENCRYPTED,
    BlockId,
    RungError,
    ToolCall,
    ToolResult,
    images_of,
    in_words,
)
from render.compaction.rungs._apply_plan import apply_proposals
from render.compaction.rungs._drop import may_go
from render.compaction.rungs._externalize import artifact_of
from render.compaction.rungs._placeholder import sensitivity_of
from render.compaction.rungs._plan import (
    AnyProposal,
    Clear,
    Drop,
    Externalize,
    Summarize,
    action_of,
)
from render.compaction.rungs._scope import Found, RungScope
from render.compaction.rungs._summarize import range_of
from render.policy._rungs import Rung
from render.stages._budget import total_tokens
from render.view._group import Entry

PROPOSALS_MAX: Final = 100_000
"""The most proposals taken from one rung, in case its iterator never ends."""


@attrs.frozen
class CheckedRung:
    """A rung that checks the proposals of another rung."""

    rung: Rung

    @property
    def name(self) -> str:
        """The name of the wrapped rung."""
        return self.rung.name

    def propose(self, scope: RungScope) -> Sequence[AnyProposal]:
        """The wrapped rung's proposals, without the disabled actions.

        Raises:
            RungError: the rung raised an exception, or its proposals break a rule.
        """
        try:
            given = list(islice(self.rung.propose(scope), PROPOSALS_MAX))
        except Exception as error:  # foreign code may raise anything
            raise RungError(self.name, f"it raised {type(error).__name__}") from error
        made = [self._data(proposal) for proposal in given]
        made = [proposal for proposal in made if action_of(proposal) not in scope.disabled]
        if fault := next(_faults(scope, made), None):
            raise RungError(self.name, fault)
        return made

    def _data(self, given: object) -> AnyProposal:
        if not isinstance(given, AnyProposal):
            raise RungError(self.name, f"it proposes {in_words(given)}")
        try:
            data: AnyProposal = msgspec.json.decode(msgspec.json.encode(given), type=AnyProposal)
        except (msgspec.MsgspecError, TypeError, ValueError, ArithmeticError) as error:
            kind = type(given).__name__
            raise RungError(self.name, f"its {kind} does not go into a plan: {error}") from error
        return data


def _faults(scope: RungScope, made: Sequence[AnyProposal]) -> Iterator[str]:
    """The rules that the proposals break, as texts; none if they are valid."""
    if not made:
        return
    summaries = [proposal for proposal in made if isinstance(proposal, Summarize)]
    fitted = range_of(scope, summaries[0]) if summaries else None
    if not summaries:
        yield from _faults_of_hides(scope, made)
    elif fitted is None or len(made) > 1:
        yield "a Summarize comes from summarize_before(), and alone"
    after = apply_proposals(scope.view, made, scope.context, fitted)
    if total_tokens(after, scope.context) >= total_tokens(scope.view, scope.context):
        yield "nothing is freed by it"


def _faults_of_hides(scope: RungScope, made: Sequence[AnyProposal]) -> Iterator[str]:
    named = Counter(block for proposal in made for block in proposal.blocks)
    entries, shown = _entries(scope), {found.entry.block.id: found for found in scope.answers()}
    for block, count in named.items():
        if block not in entries:
            yield f"{in_words(block)} is no block before the verbatim tail"
        if count > 1:
            yield f"{in_words(block)} is named {count} times"
    for proposal in made:
        yield from _faults_of_place(proposal, [entries[block] for block in proposal.blocks])
        if isinstance(proposal, Clear | Externalize):
            yield from _faults_of_result(proposal, shown, scope)
    dropped = [entries[block] for p in made if isinstance(p, Drop) for block in p.blocks]
    yield from _faults_of_dropped(dropped)


def _entries(scope: RungScope) -> Mapping[BlockId, Entry]:
    """The blocks that may be named: those before the tail whose id is unique in the view."""
    view = scope.view
    head = view.compaction.head.entries if view.compaction else ()
    times = Counter(entry.block.id for entry in (*head, *view.entries))
    found = (entry for group in scope.groups for entry in group.entries)
    return {entry.block.id: entry for entry in found if times[entry.block.id] == 1}


def _faults_of_place(proposal: AnyProposal, entries: Sequence[Entry]) -> Iterator[str]:
    versions = [entry.version for entry in entries]
    ends = [(proposal.first, proposal.last)]
    if isinstance(proposal, Drop):
        ends.append((proposal.entry.first, proposal.entry.last))
    if versions != sorted(versions) or set(ends) != {(versions[0], versions[-1])}:
        yield f"its blocks are not in log order, or not those of versions {ends[0]}"
    if not all(hidden.replacement.strip() for hidden in proposal.hidden[:1]):
        yield f"nothing stands for {in_words(proposal.blocks[0])}"


def _faults_of_result(
    proposal: Clear | Externalize, shown: Mapping[BlockId, Found], scope: RungScope
) -> Iterator[str]:
    block = proposal.blocks[0]
    found = shown.get(block)
    if found is None or len(proposal.blocks) > 1:
        yield f"{in_words(block)} is no tool result that is shown"
    elif isinstance(proposal, Externalize):
        sensitivity = sensitivity_of(found.result, found.policy)
        told = proposal.artifact, proposal.path, proposal.sensitivity
        if told != (artifact_of(found.result), found.entry.path, sensitivity) or images_of(
            found.result
        ):
            yield f"{in_words(block)} is another artifact, or none"
        is_kept = bool(found.result.artifact) or sensitivity not in ENCRYPTED
        if not (is_kept or scope.context.can_encrypt):
            yield f"{in_words(block)} is {sensitivity}, and there are no keys"


def _faults_of_dropped(entries: Sequence[Entry]) -> Iterator[str]:
    kept = [entry for entry in entries if not may_go(entry)]
    if kept:
        yield f"{in_words(kept[0].block.id)} is not to be dropped"
    calls = {entry.pair for entry in entries if isinstance(entry.block, ToolCall)}
    results = {e.pair for e in entries if isinstance(e.block, ToolResult)}
    if calls != results:
        yield "a call is dropped without its result, or a result without its call"
