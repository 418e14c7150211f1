"""Tests of `render/providers/gemini`: a module's suite has its name, or is given here.

_kinds: test_provider.py
_provider: test_provider.py, test_encode.py, test_parts.py, test_count.py, test_flatten.py, test_read.py
"""
