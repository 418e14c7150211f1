"""Tests of `render`: a module's suite has its name, or is given here.

_pipeline: test_snapshots.py, stages/test_rendered.py, stages/test_notices.py, stages/test_unread.py, ../timeline/test_invariants.py
"""
