"""Tests of `render/stages`: a module's suite has its name, or is given here.

_prefix: test_cache_points.py
_rendered: ../test_snapshots.py
"""
