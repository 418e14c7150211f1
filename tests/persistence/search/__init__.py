"""Tests of `persistence/search`: a module's suite has its name, or is given here.

_likely, _query, _ranking, _scan: test_search.py
"""
