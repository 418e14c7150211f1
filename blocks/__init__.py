"""Immutable blocks, and the events that record what happened to them."""

from typing import TYPE_CHECKING

from blocks._block import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    DocumentPart,
    Envelope,
    ImagePart,
    Note,
    OpaqueBlock,
    Plan,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    tag_of,
    text_of,
)
from blocks._codec import decode_event
from blocks._errors import (
    AccessRefusedError,
    AlreadyRecordedError,
    ArgumentError,
    ClosedError,
    CodecError,
    DamagedStoreError,
    DataError,
    FoldlineError,
    ForgottenError,
    HistoryDivergedError,
    InvalidRequestError,
    LogRewoundError,
    MisuseError,
    OutcomeUnknownError,
    SessionFormatError,
    StoreError,
    StoreLockedError,
    TimelineExistsError,
    TooLargeError,
    UnknownCallError,
    UnknownPathError,
    UnknownTimelineError,
    VersionConflictError,
)
from blocks._events import (
    BlockAppended,
    BlocksHidden,
    CompactionSkipped,
    Provenance,
    RangeCompacted,
    Recorded,
    UsageRecorded,
)
from blocks._ids import BlockId, CallId, TurnId
from blocks._name_conflict import check_timeline as _check_timeline
from blocks._naming import path_of
from blocks._summary import StructuredSummary

__all__ = [
    "AccessRefusedError",
    "AlreadyRecordedError",
    "ArgumentError",
    "AssistantCompletion",
    "AssistantThinking",
    "Block",
    "BlockAppended",
    "BlockId",
    "BlocksHidden",
    "CallId",
    "ClosedError",
    "CodecError",
    "CompactionSkipped",
    "DamagedStoreError",
    "DataError",
    "DocumentPart",
    "Envelope",
    "FoldlineError",
    "ForgottenError",
    "HistoryDivergedError",
    "ImagePart",
    "InvalidRequestError",
    "LogRewoundError",
    "MisuseError",
    "Note",
    "OpaqueBlock",
    "OutcomeUnknownError",
    "Plan",
    "Provenance",
    "ProviderPart",
    "RangeCompacted",
    "Recorded",
    "SessionFormatError",
    "StoreError",
    "StoreLockedError",
    "StructuredSummary",
    "SystemMessage",
    "TextPart",
    "TimelineExistsError",
    "TooLargeError",
    "ToolCall",
    "ToolResult",
    "TurnId",
    "UnknownCallError",
    "UnknownPathError",
    "UnknownTimelineError",
    "UsageRecorded",
    "UserAttachment",
    "UserFollowup",
    "UserPrompt",
    "UserSteer",
    "VersionConflictError",
    "decode_event",
    "parts_from",
    "path_of",
    "tag_of",
    "text_of",
]

# For the rooms of this house; not public.
from blocks._block import ENCRYPTED as ENCRYPTED
from blocks._block import PROVIDER_TAG as PROVIDER_TAG
from blocks._block import AssistantBlock as AssistantBlock
from blocks._block import Determinism as Determinism
from blocks._block import Durability as Durability
from blocks._block import Outcome as Outcome
from blocks._block import Part as Part
from blocks._block import RangeSummary as RangeSummary
from blocks._block import Sensitivity as Sensitivity
from blocks._block import ToolKind as ToolKind
from blocks._block import TurnHeader as TurnHeader
from blocks._block import artifact_id as artifact_id
from blocks._block import artifact_id_of_hash as artifact_id_of_hash
from blocks._block import artifact_ids_in as artifact_ids_in
from blocks._block import fields_in as fields_in
from blocks._block import images_of as images_of
from blocks._block import is_web_url as is_web_url
from blocks._block import leaves as leaves
from blocks._block import standing_key as standing_key
from blocks._block import standing_of as standing_of
from blocks._block import text_of_parts as text_of_parts
from blocks._block import words_of as words_of
from blocks._codec import SealedContent as SealedContent
from blocks._codec import canonical_block as canonical_block
from blocks._codec import clean_json as clean_json
from blocks._codec import decode_content as decode_content
from blocks._codec import encode_block as encode_block
from blocks._codec import encode_content as encode_content
from blocks._codec import encode_event as encode_event
from blocks._codec import fault_in as fault_in
from blocks._codec import is_sealed as is_sealed
from blocks._codec import kind_of as kind_of
from blocks._codec import sealed as sealed
from blocks._codec import stands_for as stands_for
from blocks._codec import stored_form as stored_form
from blocks._codec import without_content as without_content
from blocks._errors import Refusal as Refusal
from blocks._errors import RungError as RungError
from blocks._errors import did_you_mean as did_you_mean
from blocks._errors import in_short as in_short
from blocks._errors import in_words as in_words
from blocks._errors import install_command as install_command
from blocks._errors import lacking as lacking
from blocks._events import Answered as Answered
from blocks._events import Bill as Bill
from blocks._events import BlocksRestored as BlocksRestored
from blocks._events import CacheEntry as CacheEntry
from blocks._events import Carried as Carried
from blocks._events import Event as Event
from blocks._events import Hidden as Hidden
from blocks._events import HideReason as HideReason
from blocks._events import OpaqueEvent as OpaqueEvent
from blocks._events import RangeExpanded as RangeExpanded
from blocks._events import RequestRendered as RequestRendered
from blocks._events import SkipReason as SkipReason
from blocks._events import SummaryPrepared as SummaryPrepared
from blocks._events import SummaryReplaced as SummaryReplaced
from blocks._events import SummaryRequested as SummaryRequested
from blocks._events import TimelineForked as TimelineForked
from blocks._events import TokensCounted as TokensCounted
from blocks._events import Trigger as Trigger
from blocks._fold_state import Agreed as Agreed
from blocks._fold_state import Calibration as Calibration
from blocks._fold_state import FoldState as FoldState
from blocks._fold_state import Waiting as Waiting
from blocks._ids import ArtifactId as ArtifactId
from blocks._ids import EventId as EventId
from blocks._ids import TimelineId as TimelineId
from blocks._lazy_names import later as later
from blocks._naming import Naming as Naming
from blocks._naming import Sources as Sources
from blocks._naming import is_label as is_label
from blocks._naming import label_of as label_of
from blocks._naming import numbered as numbered
from blocks._naming import path_at as path_at
from blocks._naming import path_stem as path_stem
from blocks._naming import turn_in as turn_in
from blocks._naming import version_in as version_in
from blocks._signatures import checked_call as checked_call
from blocks._signatures import checked_calls as checked_calls
from blocks._signatures import misfit as misfit
from blocks._summary import Action as Action
from blocks._summary import ArtifactNote as ArtifactNote
from blocks._summary import CheckRecord as CheckRecord
from blocks._summary import Commit as Commit
from blocks._summary import Decision as Decision
from blocks._summary import Digest as Digest
from blocks._summary import DroppedSpan as DroppedSpan
from blocks._summary import ErrorRecord as ErrorRecord
from blocks._summary import FileChange as FileChange
from blocks._summary import Finding as Finding
from blocks._summary import NamedList as NamedList
from blocks._summary import OpenItem as OpenItem
from blocks._summary import Past as Past
from blocks._summary import Process as Process
from blocks._summary import Progress as Progress
from blocks._summary import Region as Region
from blocks._summary import Repository as Repository
from blocks._summary import Step as Step
from blocks._summary import ToolOutcome as ToolOutcome
from blocks._summary import Work as Work
from blocks._tools import EDITOR_TOOLS as EDITOR_TOOLS
from blocks._tools import TOOL_KINDS as TOOL_KINDS
from blocks._tools import WEB_TOOLS as WEB_TOOLS
from blocks._tools import asks_user as asks_user
from blocks._tools import default_durability as default_durability
from blocks._tools import inner_call as inner_call
from blocks._tools import tool_kind as tool_kind
from blocks._tools import tool_target as tool_target
from blocks._tools import written_paths as written_paths
from blocks._window import LogWindow as LogWindow
from blocks._window import window_of as window_of
from blocks._window import withheld_after as withheld_after
from blocks._window import withheld_in as withheld_in

if TYPE_CHECKING:
    from blocks.formats import parts_from

__getattr__, __dir__ = later(globals(), {"blocks.formats": "parts_from"})
_check_timeline()
