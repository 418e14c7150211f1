"""Tests of `render/stages`: a module's suite has its name, or is given here.

_budget: test_budget.py, test_account_table.py, test_misfit.py, test_trigger.py, test_cache_points.py
_notices: test_notices.py, test_unread.py
"""
