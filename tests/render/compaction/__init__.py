"""Tests of `render/compaction`: a module's suite has its name, or is given here.

_summary_block: test_apply.py, ../../timeline/summarizers/test_rooms.py
"""
