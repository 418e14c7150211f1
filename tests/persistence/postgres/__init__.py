"""Tests of `persistence/postgres`: a module's suite has its name, or is given here.

_channels, _hints, _listen: test_notify.py
_database, _errors: test_store.py, test_faults.py
_dialect: ../search/test_search.py, ../search/test_paths.py
_erase: ../sql/test_retention.py
_location: ../test_open.py
_roles: test_tenants.py
_schema, _url: test_store.py, ../sql/test_format.py
_views: ../sql/test_views.py
"""
