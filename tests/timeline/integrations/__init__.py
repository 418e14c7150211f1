"""Tests of `timeline/integrations`: each with its real framework, where that is installed.

_conversation, _pieces: test_langchain.py, test_pydantic_ai.py
_conversation: test_lacking.py

Run all of them, each in an environment of its own: `make adapters`.
"""
