"""Tests of `persistence/sqlite`: a module's suite has its name, or is given here.

_checkpoint: ../test_disasters.py, test_damage.py
_database: test_store.py, ../sql/test_database.py
_dialect: ../search/test_index.py, ../sql/test_views.py
_salvage: test_damage.py
"""
