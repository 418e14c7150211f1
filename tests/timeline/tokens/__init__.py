"""Tests of `timeline/tokens`: a module's suite has its name, or is given here.

_parts: test_counter.py
"""
