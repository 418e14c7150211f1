"""Tests of `render/providers/gemini`: a module's suite has its name, or is given here.

_kinds, _tools: test_provider.py
_names: test_encode.py
_prices: test_flatten.py
"""
