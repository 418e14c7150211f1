"""The answers of hooks and summarisers during a render, and how they are applied.

A hook or a summariser is called once.  If the timeline changes meanwhile (perhaps because the hook itself appended
something) and everything is decided again, its answer is used again.  A hook's edit gives
the plan another cut or another summary, or a logged reason why it cannot be applied.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import msgspec

from blocks import (
    ArtifactId,
    BlockId,
    Event,
    EventId,
    Provenance,
    StructuredSummary,
    SummaryRequested,
)
from render import (
    Context,
    PlannedCompaction,
    RangePlan,
    Rendered,
    Summary,
    View,
    apply_compaction,
    decide,
    recut,
    total_tokens,
)
from timeline._flow import CallHook, Flow
from timeline.observe._hooks import Edit
from timeline.summarizers._summarizer import checked_summary

if TYPE_CHECKING:
    from timeline.engine._engine import Engine

log = logging.getLogger("foldline")

_Withheld: TypeAlias = dict[BlockId, ArtifactId]


OVERTAKEN_MAX: Final = 2
"""Conflicts in one render after which its decisions are committed even if others have appended since."""


@attrs.frozen(kw_only=True)
class Made:
    """A rendered request whose decisions are committed."""

    before: View
    """The view before the decisions."""
    tokens: int
    """Tokens of the request before a compaction."""
    rendered: Rendered


def _compacted_of(attempt: "Attempt") -> int:
    return attempt.engine.view.compacted


@attrs.define(kw_only=True)
class Attempt:
    """The state of one render, or of another operation that may call hooks and summarisers."""

    engine: "Engine"
    kept: list[Event] = attrs.field(factory=list[Event])
    """Decisions of this render that are already committed."""
    made: Made | None = None
    """The first request whose decisions were committed although others had appended since."""
    _conflicts: int = attrs.field(default=0, init=False)
    _compacted: int = attrs.field(default=attrs.Factory(_compacted_of, takes_self=True), init=False)
    """Version of the newest compaction when the attempt began."""
    is_told: bool = False
    """Whether the hooks before a compaction have been called."""
    vetoed: bool = False
    is_counted: bool = False
    """Whether the next call of the summariser is counted already: a decision was made anew before it was called."""
    edits: list[Edit] = attrs.field(factory=list[Edit])
    _summaries: dict[str, tuple[int, _Withheld, Summary]] = attrs.field(
        factory=dict[str, tuple[int, _Withheld, Summary]], init=False
    )
    """By source hash: the cut, the blocks that were hidden on request at that time, and the summary."""
    _latest: View | None = attrs.field(default=None, init=False, repr=False)
    """The view after the last commit of `keep`."""
    is_nested: bool = False
    """Whether another flow of this timeline is waiting for foreign code, which may have started this attempt.
    Foreign code is then not called again, because the calls could recurse without end."""

    @contextmanager
    def away(self) -> Generator[None]:
        """Mark the engine as waiting for foreign code inside this block."""
        self.engine.away += 1
        try:
            yield
        finally:
            self.engine.away -= 1

    def is_first(self, view: View) -> bool:
        """Whether nothing was compacted since the attempt began, by it or by others."""
        return self.made is None and view.compacted == self._compacted

    def is_overtaken(self) -> bool:
        """Count a conflict; return whether there were so many that deciding again would probably fail, too."""
        self._conflicts += 1
        return self._conflicts >= OVERTAKEN_MAX

    def keep(self, view: View) -> Flow[View]:
        """Commit the decisions of a view so far; return the view after the commit."""
        yield from self.engine.settle(view)
        self.kept += view.decisions
        self._latest = self.engine.view
        return self._latest

    def count_next(self, view: View, now: float) -> Flow[View]:
        """Commit that the summariser is called next, once even if everything is decided anew before that; return the
        view after the commit."""
        is_counted, self.is_counted = self.is_counted, True
        view = view if is_counted else (yield from self.count(view, 1, now))
        self.is_counted = False
        return view

    def count(self, view: View, calls: int, now: float) -> Flow[View]:
        """Commit so many calls for a summary, with the decisions of a view so far; return the view after the commit."""
        if not calls:
            return view
        event = SummaryRequested(id=EventId(""), at=now, calls=calls)
        return (yield from self.keep(decide(view, event)))

    def current(self, view: View) -> View:
        """The view to continue from after an edit has failed: the one after the last `keep`, if there was one.

        Raises:
            VersionConflictError: something else was appended, too.
        """
        if self._latest is not None and self._latest is self.engine.view:
            return self._latest
        self.engine.check_current(view)
        return view

    def hear(self, hook: object, answer: object) -> None:
        """Record the answer of a hook before a compaction."""
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
        """The summariser's answer for this range; None: there is none, or the hidden blocks have changed since."""
        _, withheld, summary = self._summaries.get(plan.source_hash, (0, None, None))
        return summary if withheld == view.state.withheld else None

    def answered(self, plan: RangePlan, view: View, summary: Summary) -> None:
        """Record a summariser's answer."""
        self._summaries[plan.source_hash] = (plan.cut, view.state.withheld, summary)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The cuts of the ranges that were summarised."""
        return tuple(cut for cut, _, _ in self._summaries.values())


Edited: TypeAlias = tuple[PlannedCompaction, Summary | None]
"""A plan, and its summary if the hook has given one."""


class NoSuchEditError(Exception):
    """An edit cannot be carried out; the message says why."""


def edited_plan(view: View, planned: PlannedCompaction, edit: Edit, context: Context) -> Edited:
    """The plan after a hook's edit, and the summary that the hook has given.

    Raises:
        NoSuchEditError: the plan cannot be changed in this way.
    """
    if planned.fitted is None:
        raise NoSuchEditError("this compaction folds nothing")
    if edit.keep_from is not None:
        changed = recut(planned, _version(view, edit.keep_from), context)
        if changed is None or changed.fitted is None:
            raise NoSuchEditError(f"no compaction may cut at {edit.keep_from!r}")
        planned = changed
    if edit.summary is None or callable(edit.summary):
        return planned, None
    known = Provenance(source_hash=planned.fitted.range.source_hash if planned.fitted else "")
    return planned, Summary(summary=_checked(edit.summary), provenance=known)


def rewritten(summary: Summary, edit: Edit, attempt: Attempt) -> Flow[Summary]:
    """The summary as changed by the function of a hook's edit, if it has one."""
    if not callable(edit.summary):
        return summary
    with attempt.away():
        changed: object = yield CallHook(edit.summary, summary.summary)
    return attrs.evolve(summary, summary=_checked(changed))


def outcome(
    view: View, planned: PlannedCompaction, summary: Summary | None, context: Context
) -> View:
    """The view after an edited compaction.

    Raises:
        NoSuchEditError: the request would not fit, or the compaction would free too little.
    """
    after = apply_compaction(view, planned, summary, context)
    tokens = total_tokens(after, context)
    if after.compaction is view.compaction or tokens > context.limit:
        raise NoSuchEditError(f"it leaves {tokens} tokens of {planned.plan.tokens_before}")
    return after


def _version(view: View, key: int | str) -> int:
    entries = view.entries
    found = (e.version for e in entries if key in (e.version, e.path, e.block.id))
    return next(found, 0)


def _checked(given: object) -> StructuredSummary:
    if not isinstance(given, StructuredSummary):
        raise NoSuchEditError(f"a summary is a StructuredSummary, not {type(given).__name__}")
    try:
        return checked_summary(given)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise NoSuchEditError(f"this summary holds what it cannot: {error}") from error
