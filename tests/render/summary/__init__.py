"""Tests of `render/summary`: a module's suite has its name, or is given here.

_ahead: test_reading.py
_changes, _file_lines, _outside: test_files.py
_index, _market, _pieces: test_index.py, test_index_bounds.py
_merge: test_merge.py, test_lasting.py
_split_turn: test_extractive.py, ../../timeline/summarizers/test_rooms.py
_room: test_merge.py, ../../timeline/summarizers/test_rooms.py
"""
