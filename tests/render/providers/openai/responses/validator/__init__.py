"""Tests of `render/providers/openai/responses/validator`: a module's suite has its name, or is given here.

_item_rules, _tool_rules, _validate: test_rules.py
"""
