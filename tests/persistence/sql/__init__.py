"""Tests of `persistence/sql`: a module's suite has its name, or is given here.

_database, _rows, _skim: test_store.py
_held, _past, _removal, _retaining_store, _trims: test_retention.py
_index: ../search/test_search.py, ../search/test_paths.py
"""
