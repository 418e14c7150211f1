"""Tests of the contract that is shipped; stores are held to it in their own suites.

_concurrency, _derived, _events, _retention: test_contract.py
"""
