"""Tests of `render/providers/openai/chat/validator`: a module's suite has its name, or is given here.

_message_rules, _tool_rules, _validate: test_rules.py
"""
