"""What becomes of a hook's edit: the plan with another cut, another summary, or the reason why not."""

import logging
from typing import TypeAlias

import attrs
import msgspec

from blocks import Provenance, StructuredSummary
from render import Context, PlannedCompaction, Summary, View, apply_compaction, recut, total_tokens
from timeline._flow import CallHook, Flow
from timeline.engine._attempt import Attempt
from timeline.observe._hooks import Edit
from timeline.summarizers._summarizer import checked_summary

log = logging.getLogger("foldline")

Edited: TypeAlias = tuple[PlannedCompaction, Summary | None]
"""A plan, and the summary that it is to have if nobody is to be asked."""


class NoSuchEditError(Exception):
    """Why an edit is not carried out."""


def edited_plan(view: View, planned: PlannedCompaction, edit: Edit, context: Context) -> Edited:
    """The plan as a hook wants it.

    Raises:
        NoSuchEditError: it cannot be had.
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
    """The summary after a hook's function has seen it."""
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
        NoSuchEditError: the request would not fit, or gain too little.
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
