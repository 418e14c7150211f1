"""Tests of `timeline/observe`: each module has a suite of its name, or is given here.

_hooks: test_hooks.py
_steps: test_steps.py, test_quality.py
"""
