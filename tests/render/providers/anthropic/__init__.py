"""Tests of `render/providers/anthropic`: a module's suite has its name, or is given here.

_assemble, _heard, _kinds, _parts, _provider: test_encode.py
_read: ../../../timeline/test_timeline.py, ../../../timeline/arguments/test_misuse.py
"""
