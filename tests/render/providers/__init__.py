"""Tests of `render/providers`: a module's suite has its name, or is given here.

_answers: test_overflows.py, openai/responses/test_read.py, openai/chat/test_read.py, ../../timeline/test_misuse.py
_rules: anthropic/test_rules.py, gemini/test_rules.py, openai/responses/test_rules.py, openai/chat/test_rules.py
_rounds: anthropic/test_encode.py, anthropic/test_wire_ids.py, openai/test_parts.py, gemini/test_parts.py, test_logs.py
_rounds: test_logs.py, gemini/test_encode.py
"""
