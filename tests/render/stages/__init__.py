"""Tests of `render/stages`: a module's suite has its name, or is given here.

_budget_and_compaction_due: test_budget.py, test_account_table.py, test_misfit.py, test_trigger.py
_rendered_and_cache_points: test_rendered.py, test_cache_points.py, ../test_snapshots.py, test_notices.py, test_unread.py
_hide_and_bring_back: test_prune.py, test_clip.py, test_images.py, test_thinking.py, test_rehydrate.py
"""
