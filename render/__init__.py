"""From a log's view to the next request: pure stages, no clock, no I/O, no waiting."""

from typing import TYPE_CHECKING

from blocks import later as _later
from render.policy._context import Model
from render.policy._policy import Policy
from render.view._view import Json, View

__all__ = [
    "CompactionDraft",
    "Json",
    "Model",
    "Policy",
    "Proposal",
    "Rendered",
    "RungScope",
    "Summary",
    "View",
]

# For the rooms of this house; not public.
from render.policy._context import Context as Context
from render.policy._context import Fixed as Fixed
from render.policy._context import Limits as Limits
from render.policy._context import Overflow as Overflow
from render.policy._context import Provider as Provider
from render.policy._context import Rates as Rates
from render.policy._context import TokenCounter as TokenCounter
from render.policy._context import Where as Where
from render.policy._context import capacity_of as capacity_of
from render.policy._policy import RungName as RungName
from render.policy._policy import ToolPolicy as ToolPolicy
from render.providers import PROVIDERS as PROVIDERS
from render.providers import provider_of as provider_of
from render.providers import refusal as refusal
from render.stages._budget import Account as Account
from render.stages._budget import account as account
from render.stages._budget import compaction_due as compaction_due
from render.stages._budget import format_account as format_account
from render.stages._budget import total_tokens as total_tokens
from render.stages._budget import widened as widened
from render.stages._budget import within_limits as within_limits
from render.view._fold import LADDER as LADDER
from render.view._fold import commit as commit
from render.view._fold import decide as decide
from render.view._fold import fold as fold
from render.view._fold import open_view as open_view
from render.view._view import Compaction as Compaction
from render.view._view import Entry as Entry
from render.view._view import Group as Group
from render.view._view import Place as Place
from render.view._view import response_of as response_of
from render.view._view import stand_in as stand_in

if TYPE_CHECKING:
    from render._pipeline import BringBack as BringBack
    from render._pipeline import Compact as Compact
    from render._pipeline import Decided as Decided
    from render._pipeline import Need as Need
    from render._pipeline import Rendered
    from render._pipeline import handed_out as handed_out
    from render._pipeline import render as render
    from render._pipeline import show as show
    from render.compaction._ladder import CompactionDraft
    from render.compaction._ladder import CompactionTrial as CompactionTrial
    from render.compaction._ladder import ExternalFacts as ExternalFacts
    from render.compaction._ladder import apply_compaction as apply_compaction
    from render.compaction._ladder import draft_compaction as draft_compaction
    from render.compaction._ladder import gains_enough as gains_enough
    from render.compaction._ladder import recut as recut
    from render.compaction._ladder import restore_draft as restore_draft
    from render.compaction._ladder_steps import Proposal, RungScope
    from render.compaction._ladder_steps import replayable_calls as replayable_calls
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
    from render.compaction._range import FoldRange as FoldRange
    from render.compaction._range import Summary
    from render.compaction._range import apply_range as apply_range
    from render.compaction._range import compaction_event as compaction_event
    from render.compaction._range import extractive as extractive
    from render.compaction._range import fitted_at as fitted_at
    from render.compaction._range import range_before as range_before
    from render.compaction._range import range_before_tail as range_before_tail
    from render.compaction._range import skip as skip
    from render.compaction._range import truncated as truncated
    from render.providers._overflow_errors import OVERFLOW_TEXTS as OVERFLOW_TEXTS
    from render.providers._overflow_errors import overflow_of as overflow_of
    from render.providers.anthropic import validate_request as validate_request
    from render.stages._visibility import ReturnedArtifact as ReturnedArtifact
    from render.stages._visibility import fit_artifacts as fit_artifacts
    from render.summary._text import format_summary as format_summary
    from render.summary._written import SummaryRoom as SummaryRoom
    from render.summary._written import merge_summaries as merge_summaries

# What only a render, a compaction, a check or an error of a provider needs.
__getattr__, __dir__ = _later(
    globals(),
    {
        "render._pipeline": "BringBack Compact Decided Need Rendered handed_out render show",
        "render.compaction._ladder": (
            "CompactionDraft CompactionTrial ExternalFacts apply_compaction draft_compaction "
            "gains_enough recut restore_draft"
        ),
        "render.compaction._ladder_steps": "Proposal RungScope replayable_calls",
        "render.compaction._prompt": (
            "PROMPT_VERSION Asking Prompt RejectedAnswerError continued parse_answer "
            "shared_key summary_key summary_prompts without_thinking"
        ),
        "render.compaction._range": (
            "FoldRange Summary apply_range compaction_event extractive fitted_at range_before "
            "range_before_tail skip truncated"
        ),
        "render.providers._overflow_errors": "OVERFLOW_TEXTS overflow_of",
        "render.providers.anthropic": "validate_request",
        "render.stages._visibility": "ReturnedArtifact fit_artifacts",
        "render.summary._text": "format_summary",
        "render.summary._written": "SummaryRoom merge_summaries",
    },
)
