"""Tests of `render/stages`: a module's suite has its name, or is given here.

_budget: test_budget.py, test_account_table.py, test_misfit.py, test_trigger.py
_visibility: test_prune.py, test_clip.py, test_images.py, test_thinking.py, test_rehydrate.py
"""
