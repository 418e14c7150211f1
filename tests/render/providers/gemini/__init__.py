"""Tests of `render/providers/gemini`: a module's suite has its name, or is given here.

_constants: test_provider.py
_provider: test_provider.py
"""
