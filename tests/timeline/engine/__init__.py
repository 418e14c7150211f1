"""Tests of `timeline/engine`: a module's suite has its name, or is given here.

_artifacts: test_sealing.py, ../../render/stages/test_rehydrate.py, test_drafts.py
_compaction: test_drafts.py, test_switch.py, test_paid_summaries.py, test_prepare_summary.py, ../summarizers/test_summarizer.py
_compaction: ../observe/test_hooks.py
_engine: ../test_timeline.py, test_racing.py, test_flight.py, ../summarizers/test_paid_once.py, ../observe/test_steps.py
_hiding: test_hiding.py, test_redaction.py, ../test_hidden.py
_operations: test_shell.py, test_queries.py, test_once.py, test_recording.py, test_counting.py, ../test_timeline.py
_drafts: test_drafts.py, test_upgrade.py
_removal: test_retention.py, test_forgetting.py
_settings: test_settings.py, ../test_timeline.py
"""
