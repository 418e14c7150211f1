"""What a rung is given: the view as the rungs before left it, and what none of them may touch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from blocks import (
    AssistantCompletion,
    CallId,
    Determinism,
    Durability,
    ToolCall,
    ToolResult,
    Trigger,
    images_of,
    text_of,
)
from render.compaction._apply import FittedRange
from render.compaction._range import range_cut, turn_cut
from render.compaction.rungs._freshness import Drift
from render.compaction.rungs._placeholder import durability_of
from render.compaction.rungs._plan import Clear
from render.policy._context import Context
from render.policy._policy import ToolPolicy
from render.summary._identifiers import searched
from render.summary._reading import Reader, reader_of
from render.view._group import Entry, Group, Place
from render.view._view import View

ANY_TOOL = ToolPolicy()
OWN_MAX: Final = 1_000_000
"""Characters of one text of the agent's that are searched for names: of a longer one, its beginning
and its end."""


@attrs.frozen(kw_only=True)
class Found:
    """A tool result that a rung may propose to move or clear."""

    group: Group = attrs.field(repr=False)
    entry: Entry
    result: ToolResult
    call: ToolCall
    tokens: int
    """What it costs as it is shown."""
    policy: ToolPolicy

    @property
    def durability(self) -> Durability:
        """As the policy says, else as the tool declared."""
        return durability_of(self.result, self.policy)


@attrs.frozen(kw_only=True, eq=False)
class RungScope:
    """The view, the context, and how far a rung may go."""

    view: View = attrs.field(repr=False)
    context: Context = attrs.field(repr=False)
    protected: int
    """Version from which on nothing is touched: the verbatim tail."""
    missing: int = 0
    """Tokens that the request is still above its goal."""
    is_last_resort: bool = False
    """Whether the request does not fit otherwise."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """What the sources of replayable results look like now, as far as somebody has looked."""
    trigger: Trigger = "proactive"
    cuts: tuple[int, ...] = ()
    """Versions before which everything is summarised already, best first."""
    disabled: frozenset[str] = frozenset()
    """What is not to be proposed now: `externalize`, for one, where there is no artifact store."""
    is_folded_next: bool = False
    """Whether the next rung is the one that summarises."""
    ranges: list[FittedRange] = attrs.field(factory=list[FittedRange], init=False, repr=False)
    """What `Summarize` proposals were made of."""

    @property
    def reader(self) -> Reader:
        """What reads the texts of this view."""
        return reader_of(self.view, self.context)

    @property
    def groups(self) -> Iterator[Group]:
        """The groups before the tail, oldest first."""
        return (group for group in self.view.groups if group.last < self.protected)

    def results(self) -> Iterator[Found]:
        """Tool results of text before the tail that are shown whole or clipped, oldest first."""
        return (found for found in self.answers() if not images_of(found.result))

    def answers(self) -> Iterator[Found]:
        """The same, and those with pictures. What somebody else has hidden stays as it is."""
        encoder, tools = self.context.encoder, self.context.policy.tools
        for group in self.groups:
            calls = {e.pair: e.block for e in group.placed(Place.RESPONSE)}
            for entry in group.placed(Place.RESULT):
                block, call = entry.block, calls.get(entry.pair)
                is_shown = entry.replacement is None or entry.hidden_as == "clipped"
                if is_shown and isinstance(block, ToolResult) and isinstance(call, ToolCall):
                    yield Found(
                        group=group,
                        entry=entry,
                        result=block,
                        call=call,
                        tokens=encoder.shown(group).tokens_of(entry.version),
                        policy=tools.get(call.name, ANY_TOOL),
                    )

    def kept_from(self, moved: Sequence[Found]) -> int:
        """Version before which the next rung folds everything, however short these results become; 0:
        it may fold nothing."""
        if not self.is_folded_next or self.cuts:
            return 0
        if self.trigger == "proactive" and sum(found.tokens for found in moved) >= self.missing:
            return 0  # that alone may be enough
        freed = {found.entry.version for found in moved}
        cuts = [range_cut(self.view, self.context, self.trigger, freed=freed)]
        if turns := self.context.policy.keep_turns:
            cuts.append(turn_cut(self.view, self.context, turns))
        return self.view.entries[min(cut or 0 for cut in cuts)].version if all(cuts) else 0

    def freed_by(self, found: Found, replacement: str) -> int:
        """Tokens that the request is shorter by with this text in place of a result."""
        overhead = self.context.limits.result_tokens
        return found.tokens - overhead - self.context.counter.count(replacement)

    def clear(self, found: Found, replacement: str, reason: str = "") -> Clear:
        """The proposal to show this text in place of a result."""
        return Clear(
            blocks=(found.entry.block.id,),
            first=found.entry.version,
            last=found.entry.version,
            turns=(found.result.turn,),
            tokens_freed=self.freed_by(found, replacement),
            reason=reason,
            replacement=replacement,
        )

    def drift(self) -> Drift:
        """Tells which replayable results may have gone stale."""
        return Drift(self.view.entries, self.current)

    def used(self) -> Mapping[str, int]:
        """How often the agent itself has written each identifier that is visible."""
        uses: dict[str, int] = {}
        names_of = self.reader.names
        for names in self.view.group_memo.each(
            "said", self.view.groups, lambda g: _said(g, names_of)
        ):
            for name in names:
                uses[name] = uses.get(name, 0) + 1
        return uses


def _said(group: Group, names_of: Callable[[str], set[str]]) -> tuple[str, ...]:
    """The identifiers that the agent wrote in a group, once for each block."""
    own = (e.block for e in group.entries if isinstance(e.block, ToolCall | AssistantCompletion))
    texts = ([*map(names_of, searched(text_of(block), OWN_MAX))] for block in own)
    return tuple(name for names in texts for name in sorted(set[str]().union(*names)))


def replayable_calls(view: View, context: Context) -> list[ToolCall]:
    """The calls whose results could be cleared, if only somebody looked at their sources."""
    scope = RungScope(
        view=view, context=context, protected=view.groups[-1].first if view.groups else 0
    )
    smallest = context.policy.prune_block_tokens
    return [
        found.call
        for found in scope.results()
        if found.durability == "replayable" and found.tokens > smallest
    ]
