"""Tests of `timeline/tokens`: a module's suite has its name, or is given here.

_cache, _estimate: test_counter.py
_media: test_parts.py
"""
