"""From a log's view to the next request: pure stages, no clock, no I/O, no waiting."""

from typing import TYPE_CHECKING

from render.compaction._draft import CompactionDraft, Proposal
from render.policy._context import Model
from render.policy._policy import Policy, ToolPolicy
from render.stages._rendered import Rendered
from render.view._group import Json
from render.view._view import View

__all__ = [
    "RUNGS",
    "CompactionDraft",
    "Json",
    "Model",
    "Policy",
    "Proposal",
    "Rendered",
    "RungScope",
    "Summary",
    "ToolPolicy",
    "View",
    "summarize_before",
]

# For the rooms of this house; not public.
from render._pipeline import BringBack as BringBack
from render._pipeline import Compact as Compact
from render._pipeline import Decided as Decided
from render._pipeline import Need as Need
from render._pipeline import handed_out as handed_out
from render._pipeline import render as render
from render._pipeline import show as show
from render.policy._context import Context as Context
from render.policy._context import Fixed as Fixed
from render.policy._context import Overflow as Overflow
from render.policy._context import Provider as Provider
from render.policy._context import Rates as Rates
from render.policy._context import TokenCounter as TokenCounter
from render.policy._context import Where as Where
from render.policy._policy import RungName as RungName
from render.providers import OVERFLOW_TEXTS as OVERFLOW_TEXTS
from render.providers import PROVIDERS as PROVIDERS
from render.providers import overflow_of as overflow_of
from render.providers import provider_of as provider_of
from render.providers import refusal as refusal
from render.stages._budget import Account as Account
from render.stages._budget import account as account
from render.stages._budget import compaction_due as compaction_due
from render.stages._budget import format_account as format_account
from render.stages._budget import total_tokens as total_tokens
from render.stages._budget import within_provider_limits as within_provider_limits
from render.stages._visibility import Returned as Returned
from render.stages._visibility import returned as returned
from render.view._fold import commit as commit
from render.view._fold import decide as decide
from render.view._fold import fold as fold
from render.view._fold import open_view as open_view
from render.view._group import LADDER as LADDER
from render.view._group import Entry as Entry
from render.view._group import Group as Group
from render.view._group import Place as Place
from render.view._group import stand_in as stand_in
from render.view._view import Compaction as Compaction

if TYPE_CHECKING:
    from render.compaction._apply import FoldRange as FoldRange
    from render.compaction._apply import Summary
    from render.compaction._apply import apply_range as apply_range
    from render.compaction._apply import compaction_event as compaction_event
    from render.compaction._apply import extractive as extractive
    from render.compaction._apply import skip as skip
    from render.compaction._apply import truncated as truncated
    from render.compaction._cut import fitted_at as fitted_at
    from render.compaction._cut import range_before as range_before
    from render.compaction._cut import range_before_tail as range_before_tail
    from render.compaction._ladder import CompactionTrial as CompactionTrial
    from render.compaction._ladder import ExternalFacts as ExternalFacts
    from render.compaction._ladder import apply_compaction as apply_compaction
    from render.compaction._ladder import draft_compaction as draft_compaction
    from render.compaction._ladder import gains_enough as gains_enough
    from render.compaction._ladder import recut as recut
    from render.compaction._ladder import restore_draft as restore_draft
    from render.compaction._prompt import PROMPT_VERSION as PROMPT_VERSION
    from render.compaction._prompt import Asking as Asking
    from render.compaction._prompt import Prompt as Prompt
    from render.compaction._prompt import RejectedAnswerError as RejectedAnswerError
    from render.compaction._prompt import continued as continued
    from render.compaction._prompt import parse_answer as parse_answer
    from render.compaction._prompt import shared_key as shared_key
    from render.compaction._prompt import summary_key as summary_key
    from render.compaction._prompt import summary_prompts as summary_prompts
    from render.compaction._prompt import without_thinking as without_thinking
    from render.compaction._rungs import RUNGS, RungScope, summarize_before
    from render.compaction._rungs import replayable_calls as replayable_calls
    from render.providers.anthropic import validate_request as validate_request
    from render.summary._merge import SummaryRoom as SummaryRoom
    from render.summary._merge import merge_summaries as merge_summaries
    from render.summary._redaction import Redaction as Redaction
    from render.summary._redaction import redaction_of as redaction_of
    from render.summary._redaction import said_by as said_by
    from render.summary._redaction import without_blocks as without_blocks
    from render.summary._text import format_summary as format_summary

_LATER = {
    "Asking": "render.compaction._prompt",
    "CompactionTrial": "render.compaction._ladder",
    "ExternalFacts": "render.compaction._ladder",
    "FoldRange": "render.compaction._apply",
    "PROMPT_VERSION": "render.compaction._prompt",
    "Prompt": "render.compaction._prompt",
    "RUNGS": "render.compaction._rungs",
    "Redaction": "render.summary._redaction",
    "RejectedAnswerError": "render.compaction._prompt",
    "RungScope": "render.compaction._rungs",
    "Summary": "render.compaction._apply",
    "SummaryRoom": "render.summary._merge",
    "apply_compaction": "render.compaction._ladder",
    "apply_range": "render.compaction._apply",
    "compaction_event": "render.compaction._apply",
    "continued": "render.compaction._prompt",
    "draft_compaction": "render.compaction._ladder",
    "extractive": "render.compaction._apply",
    "fitted_at": "render.compaction._cut",
    "format_summary": "render.summary._text",
    "gains_enough": "render.compaction._ladder",
    "merge_summaries": "render.summary._merge",
    "parse_answer": "render.compaction._prompt",
    "range_before": "render.compaction._cut",
    "range_before_tail": "render.compaction._cut",
    "recut": "render.compaction._ladder",
    "redaction_of": "render.summary._redaction",
    "replayable_calls": "render.compaction._rungs",
    "restore_draft": "render.compaction._ladder",
    "said_by": "render.summary._redaction",
    "shared_key": "render.compaction._prompt",
    "skip": "render.compaction._apply",
    "summarize_before": "render.compaction._rungs",
    "summary_key": "render.compaction._prompt",
    "summary_prompts": "render.compaction._prompt",
    "truncated": "render.compaction._apply",
    "validate_request": "render.providers.anthropic",
    "without_blocks": "render.summary._redaction",
    "without_thinking": "render.compaction._prompt",
}
"""What only a compaction or a check needs, and its module, which is loaded when it is used."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"TYPE_CHECKING"})
