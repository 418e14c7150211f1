"""Tests of `render/policy`: a module's suite has its name, or is given here.

_context: ../stages/test_budget.py, ../test_snapshots.py
_policy: test_policy.py, test_room.py, ../compaction/test_checked.py
"""
