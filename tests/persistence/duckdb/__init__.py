"""Tests of `persistence/duckdb`: a module's suite has its name, or is given here.

_append, _fresh_file, _reader, _retaining_store, _schema, _skim, _trims, _writer: test_store.py, test_faults.py, ../test_kills.py
_asked, _quality, _quality_view: ../../timeline/observe/test_quality.py
_cursors: test_file_lock.py
_index: ../search/test_search.py, ../search/test_paths.py
_location: ../test_open.py
_repair: ../test_repair.py
_memory_release: ../../timeline/test_large.py
"""
