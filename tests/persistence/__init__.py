"""Tests of `persistence`: a module's suite has its name, or is given here.

_receipt: test_disasters.py
_log: test_memory.py, duckdb/test_store.py
_file: duckdb/test_file_lock.py, test_look.py
_bucket: artifacts/test_s3.py, test_secrets.py
"""
