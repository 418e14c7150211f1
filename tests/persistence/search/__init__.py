"""Tests of `persistence/search`: a module's suite has its name, or is given here.

_index: test_search.py, test_paths.py
"""
