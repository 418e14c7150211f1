"""Tests of `render/providers/anthropic`: a module's suite has its name, or is given here.

_constants: test_encode.py, test_provider.py
_provider: test_provider.py
_provider: test_encode.py, test_provider.py
_provider: ../../../timeline/test_timeline.py, ../../../timeline/test_misuse.py
"""
