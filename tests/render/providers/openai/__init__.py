"""Tests of `render/providers/openai`: a module's suite has its name, or is given here.

_common: test_common.py, ../test_tool_definitions.py
_common_rules: test_responses_rules.py, test_chat_rules.py
_constants: test_common.py
"""
