"""Tests of `render`: a module's suite has its name, or is given here.

_pipeline: test_snapshots.py, ../timeline/test_invariants.py
"""
