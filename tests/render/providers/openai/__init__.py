"""Tests of `render/providers/openai`: a module's suite has its name, or is given here.

_rules: responses/test_rules.py, chat/test_rules.py
_kinds, _rounds: test_shared.py
_shared: test_shared.py, ../test_definitions.py
"""
