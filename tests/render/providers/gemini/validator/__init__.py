"""Tests of `render/providers/gemini/validator`: a module's suite has its name, or is given here.

_content_rules, _tool_rules, _validate: test_rules.py
"""
