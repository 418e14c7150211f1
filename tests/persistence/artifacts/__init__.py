"""Tests of `persistence/artifacts`: a module's suite has its name, or is given here.

_access, _artifacts, _memory, _open, _sql, _store, _types, _url: test_stores.py
_copy: ../test_copy.py
_tables: test_verify.py, ../test_verify_tables.py
_backend, _pieces: test_stores.py, test_verify.py
"""
