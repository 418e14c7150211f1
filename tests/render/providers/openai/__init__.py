"""Tests of `render/providers/openai`: a module's suite has its name, or is given here.

_rules: responses/test_rules.py, chat/test_rules.py
_kinds, _rounds: test_agents.py, test_logs.py
_shared: test_agents.py, test_count.py, test_flatten.py, test_parts.py, ../test_definitions.py
"""
