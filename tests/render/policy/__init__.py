"""Tests of `render/policy`: a module's suite has its name, or is given here.

_context: test_room.py, ../stages/test_budget.py, ../test_snapshots.py
_policy: test_policy.py, ../compaction/test_checked.py
"""
