"""Tests of `persistence/sql`: a module's suite has its name, or is given here.

_database: test_database.py
_index: ../search/test_index.py
_rows: test_store.py
"""
