"""Tests of `render/providers/anthropic/validator`: a module's suite has its name, or is given here.

_block_rules, _dialogue_rules, _media_rules, _message_rules, _tool_rules: test_rules.py
_facts: test_validate.py
"""
