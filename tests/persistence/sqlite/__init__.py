"""Tests of `persistence/sqlite`: a module's suite has its name, or is given here.

_database: test_store.py, ../sql/test_format.py
_dialect: ../search/test_search.py, ../sql/test_views.py
_salvage: test_damage.py
"""
