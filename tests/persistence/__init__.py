"""Tests of `persistence`: a module's suite has its name, or is given here.

_log, _memory_log, _retention, _store: test_memory.py, duckdb/test_store.py
_stand_ins: test_copy.py
_place: duckdb/test_file_lock.py
_location: test_open.py
_moment: test_look.py
_skim: ../timeline/engine/test_gist.py, test_memory.py
_watch: ../timeline/engine/test_following.py, test_memory.py
"""
