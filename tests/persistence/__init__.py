"""Tests of `persistence`: a module's suite has its name, or is given here.

_asking: ../timeline/observe/test_quality.py
_checks, _heads, _store, _stored: test_memory.py, duckdb/test_store.py
_place: duckdb/test_file_lock.py
"""
