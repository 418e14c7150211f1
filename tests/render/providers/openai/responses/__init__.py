"""Tests of `render/providers/openai/responses`: a module's suite has its name, or is given here.

_provider: test_provider.py
"""
