"""Tests of `render/summary`: a module's suite has its name, or is given here.

_commands: test_commands.py, test_outcomes.py, test_shell.py
_identifiers: test_identifiers.py, test_output.py
_index: test_index.py, test_index_bounds.py, test_layers.py, test_mentions.py
_merge: test_merge.py, test_lasting.py, ../../timeline/summarizers/test_rooms.py
_progress: test_state.py
_reading: test_reading.py, test_index_bounds.py
_text: test_text.py, test_dates.py
"""
