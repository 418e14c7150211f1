"""Tests of `persistence/search`: a module's suite has its name, or is given here.

_candidates, _query, _ranking: test_search.py
"""
