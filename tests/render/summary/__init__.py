"""Tests of `render/summary`: a module's suite has its name, or is given here.

_actions: test_actions.py
_commands: test_actions.py, test_outcomes.py, test_shell.py
_identifiers: test_identifiers.py, test_output.py
_merge: test_merge.py, test_lasting.py, ../../timeline/summarizers/test_rooms.py
_room: ../compaction/test_fitting.py
_text: test_text.py, test_dates.py, test_counts.py
"""
