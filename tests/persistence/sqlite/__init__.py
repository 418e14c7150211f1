"""Tests of `persistence/sqlite`: a module's suite has its name, or is given here.

_database, _schema: test_store.py, ../sql/test_format.py
_dialect, _new_turns: ../search/test_search.py, ../search/test_paths.py
_salvage, _wal: test_damage.py
_location: ../test_open.py
_views: ../sql/test_views.py
"""
