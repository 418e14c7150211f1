"""Tests of `persistence/search`: a module's suite has its name, or is given here.

_paths, _search: test_index.py
"""
