"""The input of a rung: the view as the earlier rungs left it, and the limits that the rung must respect."""

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
from blocks.formats import lays_down
from render.compaction._apply import FittedRange
from render.compaction._cut import range_cut, turns_cut
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
"""Most characters of one text of the agent that are searched for identifiers; of a longer text, its
beginning and end."""


@attrs.frozen(kw_only=True)
class Found:
    """A tool result that a rung may propose to move or clear."""

    group: Group = attrs.field(repr=False)
    entry: Entry
    result: ToolResult
    call: ToolCall
    tokens: int
    """Tokens of the result as it is shown."""
    policy: ToolPolicy

    @property
    def durability(self) -> Durability:
        """The policy's durability, or else the one the tool declared."""
        return durability_of(self.result, self.policy)


@attrs.frozen(kw_only=True, eq=False)
class RungScope:
    """The view, the context, and how far a rung may go."""

    view: View = attrs.field(repr=False)
    context: Context = attrs.field(repr=False)
    protected: int
    """Version of the first block of the verbatim tail, which must not be touched."""
    missing: int = 0
    """Tokens by which the request exceeds its goal."""
    is_last_resort: bool = False
    """Whether this is the second pass, in which only the newest round is protected."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """The current state of the sources of replayable results, as far as it was probed."""
    trigger: Trigger = "proactive"
    cuts: tuple[int, ...] = ()
    """Versions before which a summary is already prepared, best first."""
    disabled: frozenset[str] = frozenset()
    """Actions that must not be proposed now, for example `externalize` without an artifact store."""
    is_folded_next: bool = False
    """Whether the next rung is `summarize`."""
    ranges: list[FittedRange] = attrs.field(factory=list[FittedRange], init=False, repr=False)
    """The ranges of the `Summarize` proposals made in this scope."""

    @property
    def reader(self) -> Reader:
        """The cached reader for the texts of this view."""
        return reader_of(self.view, self.context)

    @property
    def groups(self) -> Iterator[Group]:
        """The groups before the tail, oldest first."""
        return (group for group in self.view.groups if group.last < self.protected)

    def results(self) -> Iterator[Found]:
        """Tool results before the tail that are shown whole or clipped, oldest first; without results with images
        or standing instructions."""
        found = (found for found in self.answers() if not images_of(found.result))
        return (each for each in found if not lays_down(each.result))

    def answers(self) -> Iterator[Found]:
        """As `results`, with images. Results that are hidden for another reason are left out."""
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
        """Version before which the next rung will fold everything, however short these results become; 0 if
        it may fold nothing."""
        if not self.is_folded_next or self.cuts:
            return 0
        if self.trigger == "proactive" and sum(found.tokens for found in moved) >= self.missing:
            return 0  # these alone may free enough
        freed = {found.entry.version for found in moved}
        cuts = [range_cut(self.view, self.context, self.trigger, freed=freed)]
        if turns := self.context.policy.keep_turns:
            cuts.append(turns_cut(self.view.entries, turns))
        return self.view.entries[min(cut or 0 for cut in cuts)].version if all(cuts) else 0

    def freed_by(self, found: Found, replacement: str) -> int:
        """Tokens that the request saves if this text replaces the result."""
        overhead = self.context.limits.result_tokens
        return found.tokens - overhead - self.context.counter.count(replacement)

    def clear(self, found: Found, replacement: str, reason: str = "") -> Clear:
        """The proposal to show this text instead of the result."""
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
        """The evidence about which replayable results may be stale."""
        return Drift(self.view.entries, self.current)

    def used(self) -> Mapping[str, int]:
        """In how many visible blocks the agent has written each identifier."""
        uses: dict[str, int] = {}
        names_of = self.reader.names
        for names in self.view.group_memo.each(
            "said", self.view.groups, lambda g: _said(g, names_of)
        ):
            for name in names:
                uses[name] = uses.get(name, 0) + 1
        return uses


def _said(group: Group, names_of: Callable[[str], set[str]]) -> tuple[str, ...]:
    """The identifiers that the agent wrote in a group, once per block."""
    own = (e.block for e in group.entries if isinstance(e.block, ToolCall | AssistantCompletion))
    texts = ([*map(names_of, searched(text_of(block), OWN_MAX))] for block in own)
    return tuple(name for names in texts for name in sorted(set[str]().union(*names)))


def replayable_calls(view: View, context: Context) -> list[ToolCall]:
    """The calls whose results could be cleared if their sources were probed."""
    scope = RungScope(
        view=view, context=context, protected=view.groups[-1].first if view.groups else 0
    )
    smallest = context.policy.prune_block_tokens
    return [
        found.call
        for found in scope.results()
        if found.durability == "replayable" and found.tokens > smallest
    ]
