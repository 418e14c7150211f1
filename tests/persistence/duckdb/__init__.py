"""Tests of `persistence/duckdb`: a module's suite has its name, or is given here.

_dialect: ../search/test_index.py, test_views.py
_file: test_file_lock.py, test_store.py
_quality_signals: ../../timeline/observe/test_quality.py
_reader: test_store.py, ../../timeline/test_large.py
_tables: test_large_events.py, test_retention.py
_writer: test_store.py, test_heads.py, test_faults.py, test_group_commit.py, ../test_kills.py
"""
