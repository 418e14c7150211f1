"""Tests of `render/providers/openai`: a module's suite has its name, or is given here.

_kinds, _limits, _rounds: test_agents.py, test_logs.py
_rules: responses/test_rules.py, chat/test_rules.py
_prices: test_flatten.py
_tools: ../test_definitions.py
"""
