"""The public names, spelled out: adding one is a decision."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

EXPORTS = {
    "blocks": """
        AccessRefusedError Agreed AlreadyRecordedError Answered ArgumentError ArtifactId
        ArtifactNote ArtifactPointer ArtifactRecord AssistantBlock AssistantCompletion
        AssistantThinking Author Bill Block BlockAppended BlockId BlocksHidden BlocksRestored
        CacheEntry Calibration CallId Carried ClosedError CodecError CommandRecord
        CompactionSkipped DamagedStoreError DataError Decision Determinism Digest
        DocumentPart DroppedSpan Durability EDITOR_TOOLS Envelope Event EventId Excerpt
        FoldState FoldlineError ForgottenError Format Hidden HiddenRecord
        HideReason HistoryDivergedError ImagePart Index InvalidRequestError Layer LogWindow
        ErrorRecord MisuseError Named Naming Note OpaqueBlock OpaqueEvent OpenItem Outcome
        OutcomeUnknownError PROVIDER_TAG Part Plan
        PolicyError Provenance ProviderPart RangeCompacted RangeExpanded RangeSummary
        Recorded Refusal RequestRendered RungError SearchRecord Sensitivity SessionFormatError
        SkipReason Sources StoreError StoreLockedError StructuredSummary SummaryPrepared SummaryRequested
        SummaryReplaced SystemMessage TOOL_KINDS Term TextPart TimelineExistsError
        TimelineForked TimelineId ToolCall ToolKind ToolOutcome ToolResult ToolTally
        Trigger TurnHeader TurnId UnknownCallError UnknownPathError UnknownTimelineError
        ENCRYPTED SealedContent TooLargeError decode_content encode_content is_sealed sealed stands_for
        without_content TokensCounted UsageRecorded UserAttachment UserFollowup UserPrompt UserSteer
        VersionConflictError WEB_TOOLS Waiting Work artifact_id artifact_id_of_hash
        artifact_ids_in canonical_block checked_call checked_calls clean_json decode_block
        decode_event default_durability did_you_mean encode_block encode_event fault_in
        fields_in images_of in_short in_words is_known is_label is_web_url kind_of label_of leaves misfit nearest numbered
        parts_from path_at path_of
        path_stem asks_user standing_of tag_of text_of text_of_parts texts_in tool_kind tool_target turn_in version_in window_of
        withheld_after withheld_in written_paths
    """,
    "blocks.formats": """
        Answer BlockMaker Call Content FORMATS Format Json Message REASONING Response Result Role
        SHAPES Said Shape Stream Thought Verbatim answer_of anthropic_usage_in as_json checked_format count
        dumped event_of gemini_field gemini_usage_in items messages_from messages_in obj objs
        parts_from parts_in parts_of plain response_from response_in spelled stream_of string
        tool_input usage_in usage_of ClientText appended_texts client_text lays_down operator_text standing_key
        INTERRUPTION
    """,
    "render": """
        Account Action Answer BringBack CachePoint CannotFit Cause
        Compact Compaction CompactionPlan Context Decided Encoder Entry
        ExternalFacts FittedRange Fixed Found Group Json LADDER Limits MASK
        Model Need Overflow PROMPT_VERSION PROVIDERS Piece Place PlannedCompaction
        Policy Prompt Provider REPLAYED Rates RUNGS RangePlan Redaction RejectedAnswerError
        Rendered Returned Rung RungName Proposal RungScope Segment Shown Spot
        Summary SummaryRoom ThinkingRule TokenCounter ToolPolicy View Violation Where
        account apply_compaction apply_range clip_oversized commit
        compaction_due compaction_event continued decide extractive fits_after fitted_at
        fitting_range fold format_account format_summary gains_enough handed_out is_cold limit_images
        merge_summaries normalised open_view overflow_of parse_answer plan_at
        plan_compaction plan_range provider_of prune_expired recut redaction_of refusal
        render replayable_calls restore_plan returned said_by shared_key show skip stand_in
        strip_unbound summarize_before summary_key summary_prompts summary_texts total_tokens
        truncated validate_request wanted without_excerpts without_thinking
    """,
    "persistence": """
        ArchivedRange ArtifactDescription ArtifactMetadata ArtifactStore AuditRecord BlockIndex CopyReport DuckDBStore
        EVENT_BYTES_MAX EventStore Head Hit Kept KeyRing Keys MemoryArtifacts MemoryStore PostgresStore Removed
        RepairReport Requester SQLiteStore Skim StoreLocation StoreProblem StoreReport StoredEvent TimelineInfo TurnChange
        block_at checked_bytes checked_events checked_fork checked_page copy_store locate_store look looking
        open_artifacts open_store quality_rows repair search_blocks source_at timeline_infos verify
    """,
    "persistence.testing": """
        RecordingStore StoreContract broken_promises
    """,
    "persistence.sessions": """
        Arrived EXPORT FORMATS Item Notice Responded Session export_lines exported_events read_session
    """,
    "timeline": """
        AnthropicSummarizer ModelSummarizer AsyncTimeline Compacted Compacting Edit ExtractiveSummarizer Hooks Options
        Policy Step Summarizer SummaryFailedError SummaryRequest Synced Timeline aretry_with_compaction
        describe_model known_models model_named named_policies overflow_in policy_named retry_with_compaction
        AsyncReactAgent Quality ReactAgent quality_of tool
    """,
    "timeline.react": """
        AgentHooks AgentSettings AsyncReactAgent Outcome ReactAgent SessionStarted StepDone StepStarted
        StreamLost Tool ToolReply Usage file_state reading_tools tool
    """,
    "timeline.tokens": """
        EstimateCounter ModelCounter O200kCounter TextCounter counter_for image_tokens
        RequestCounter RequestTokens
    """,
    "timeline.fake_provider": """
        ApiError Responder Call Exchange Fault FakeServer FakeProvider HttpRequest Reply Script summary_reply
        tutorial_responder wants_summary
    """,
    "timeline.replay": """
        Coverage Dump Means Point ReplayOptions ReplayResult Sent compared coverage dump_to places
        Progress Recall replay reserve_store atomic_write Replayed replay_with_log
        LeftOut Trial Tuned Tuning telling_window tune
    """,
    "timeline.billing": """
        CacheRequest CacheStep FlatBlock Flattener PromptCache RunningBill SummaryCall numbered price
        summary_price summary_units units usage_price whole_prompt_ttl
    """,
    "timeline.gateway": """
        Gateway GatewayServer Savings
    """,
    "timeline.report": """
        Prompting Reported Showing live_app report_html reported_log reported_replay
    """,
}


def public_names(module: ModuleType) -> set[str]:
    """What a package offers: no underscore, no submodule that an import happened to load."""
    return {
        name
        for name in dir(module)
        if not name.startswith("_") and not isinstance(getattr(module, name), ModuleType)
    }


@pytest.mark.parametrize(("package", "names"), EXPORTS.items(), ids=list(EXPORTS))
def test_public_names(package: str, names: str) -> None:
    assert public_names(importlib.import_module(package)) == set(names.split())


@pytest.mark.parametrize("package", EXPORTS)
def test_every_public_name_is_re_exported_on_purpose(package: str) -> None:
    """`import x as x` is what type checkers take for an export."""
    module = importlib.import_module(package)
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    for name in public_names(module):
        assert f" import {name} as {name}" in text, name
