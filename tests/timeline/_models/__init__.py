"""Suites of other names:

_litellm: test_files.py
"""
