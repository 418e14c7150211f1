"""Tests of `timeline/engine`: a module's suite has its name, or is given here.

_artifacts: ../../render/stages/test_rehydrate.py, test_plans.py
_attempt: ../observe/test_hooks_at_work.py, test_plans.py
_compaction: test_plans.py, test_switch.py, test_paid_summaries.py, ../summarizers/test_failures.py
_engine: ../test_timeline.py, test_racing.py, test_flight.py, ../summarizers/test_paid_once.py
_settings: ../test_timeline.py
_observers: ../observe/test_steps.py
_operations: test_shell.py, test_queries.py, test_sync.py, test_retention.py, test_forgetting.py, ../test_timeline.py
_contest, _fits: test_racing.py
_foreign, _history, _parting: test_sync.py
_streaming: test_recording.py
_followers, _signal: test_following.py
_plans: test_upgrade.py
_sharing, _withholding: test_hiding.py, ../test_hidden.py
_snapshot: ../react/test_snapshot.py
"""
