"""What a render has heard from other people's code: it holds when the render has to begin anew.

A hook or a summariser is called once, also when the timeline moves on meanwhile (it may have appended
something itself) and everything is decided again.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeAlias

import attrs

from blocks import ArtifactId, BlockId, Event
from render import RangePlan, Summary, View
from timeline._flow import Flow
from timeline.engine._journal import Journal
from timeline.observe._hooks import Edit

log = logging.getLogger("foldline")

_Withheld: TypeAlias = dict[BlockId, ArtifactId]


@attrs.define(kw_only=True)
class Attempt:
    """One render, or whatever else may ask hooks and summarisers."""

    journal: Journal
    kept: list[Event] = attrs.field(factory=list[Event])
    """What was committed on the way."""
    is_told: bool = False
    """The hooks before a compaction have been called."""
    vetoed: bool = False
    edits: list[Edit] = attrs.field(factory=list[Edit])
    _summaries: dict[str, tuple[int, _Withheld, Summary]] = attrs.field(
        factory=dict[str, tuple[int, _Withheld, Summary]], init=False
    )
    """By source hash: the cut, what was hidden on request then, and the answer."""
    _latest: View | None = attrs.field(default=None, init=False, repr=False)
    """The view after what was kept last."""
    is_nested: bool = False
    """Another flow of this timeline waits for foreign code, which may be what has begun this one:
    it is not called again, or there would be no end to it."""

    @contextmanager
    def away(self) -> Generator[None]:
        """While foreign code is called."""
        self.journal.away += 1
        try:
            yield
        finally:
            self.journal.away -= 1

    def keep(self, view: View) -> Flow[View]:
        """Commit what a view has decided so far, and go on from there."""
        yield from self.journal.settle(view)
        self.kept += view.decisions
        self._latest = self.journal.view
        return self._latest

    def current(self, view: View) -> View:
        """The view to go on from, when what was kept on the way has led nowhere.

        Raises:
            VersionConflictError: something else was appended as well.
        """
        if self._latest is not None and self._latest is self.journal.view:
            return self._latest
        self.journal.check_current(view)
        return view

    def hear(self, hook: object, answer: object) -> None:
        """Note what a hook before a compaction has answered."""
        match answer:
            case False:
                self.vetoed = True
            case Edit():
                self.edits.append(answer)
            case None | True:
                pass
            case _:
                log.warning("hook %r answered %r, which means nothing", hook, type(answer).__name__)

    def summary_of(self, plan: RangePlan, view: View) -> Summary | None:
        """What a summariser has answered for this range, if nothing was hidden since."""
        _, withheld, summary = self._summaries.get(plan.source_hash, (0, None, None))
        return summary if withheld == view.state.withheld else None

    def answered(self, plan: RangePlan, view: View, summary: Summary) -> None:
        """Note a summariser's answer."""
        self._summaries[plan.source_hash] = (plan.cut, view.state.withheld, summary)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where the ranges end that were summarised."""
        return tuple(cut for cut, _, _ in self._summaries.values())
