"""Tests of `timeline`: a module's suite has its name, or is given here.

_async, _driving: engine/test_plans.py, arguments/test_misuse.py
"""
