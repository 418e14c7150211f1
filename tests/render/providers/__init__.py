"""Tests of `render/providers`: a module's suite has its name, or is given here.

_encoding: anthropic/test_encode.py, anthropic/test_provider.py, openai/test_common.py, gemini/test_provider.py, test_encoding.py
_responses: openai/test_responses.py, openai/test_chat.py, ../../timeline/test_misuse.py
_rules: anthropic/test_rules.py, gemini/test_rules.py, openai/test_responses_rules.py, openai/test_chat_rules.py
"""
