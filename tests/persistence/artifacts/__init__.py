"""Tests of `persistence/artifacts`: a module's suite has its name, or is given here.

_artifacts, _sql: test_stores.py
_store: test_stores.py, test_verify.py
"""
