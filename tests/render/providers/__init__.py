"""Tests of `render/providers`: a module's suite has its name, or is given here.

_rules: anthropic/test_rules.py, gemini/test_rules.py, openai/responses/test_rules.py, openai/chat/test_rules.py
_heard: anthropic/test_encode.py, test_logs.py
_media: openai/test_parts.py, gemini/test_parts.py
_overflow: anthropic/test_overflow.py, openai/test_overflow.py, gemini/test_overflow.py
_names: anthropic/test_wire_ids.py
_read: openai/responses/test_read.py, openai/chat/test_read.py, ../../timeline/arguments/test_misuse.py
_rounds: test_logs.py, gemini/test_encode.py
"""
