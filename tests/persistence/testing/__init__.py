"""Tests of the contract that is shipped; stores are held to it in their own suites.

_append, _concurrency, _content, _copy, _events, _interrupt, _read, _retaining, _retention, _search, _skim: test_contract.py
"""
