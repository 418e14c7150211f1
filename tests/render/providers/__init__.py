"""Tests of `render/providers`: a module's suite has its name, or is given here.

_answers: test_overflows.py, openai/responses/test_provider.py, openai/chat/test_provider.py, ../../timeline/test_misuse.py
_rules: anthropic/test_rules.py, gemini/test_rules.py, openai/responses/test_rules.py, openai/chat/test_rules.py
_rounds: anthropic/test_encode.py, anthropic/test_provider.py, openai/test_shared.py, gemini/test_provider.py, test_rounds.py
"""
