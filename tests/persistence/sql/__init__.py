"""Tests of `persistence/sql`: a module's suite has its name, or is given here.

_database: test_format.py, test_patience.py
_index: ../search/test_search.py
_rows: test_store.py
"""
