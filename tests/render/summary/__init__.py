"""Tests of `render/summary`: a module's suite has its name, or is given here.

_actions: test_actions.py
_calls: test_outcomes.py, test_output.py, test_files.py
_findings: test_findings.py, test_turns.py
_prose: test_prose.py, test_identifiers.py
_state: test_state.py, test_edits.py, test_runs.py
_text: test_text.py, ../compaction/test_counts.py
_working_set: test_working_set.py, test_copies.py
_written: test_written.py, test_merge.py, test_lasting.py, ../../timeline/summarizers/test_rooms.py
"""
