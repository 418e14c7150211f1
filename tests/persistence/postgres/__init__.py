"""Tests of `persistence/postgres`: a module's suite has its name, or is given here.

_address: test_settings.py, test_store.py
_database: test_store.py, test_faults.py, ../sql/test_retention.py
_dialect: ../search/test_index.py, ../sql/test_views.py
_schema: test_tenants.py, ../sql/test_database.py
"""
