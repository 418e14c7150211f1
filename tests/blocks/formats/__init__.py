"""Tests of `blocks/formats`: a module's suite has its name, or is given here.

_anthropic, _chat, _gemini, _responses, _langchain, _message, _blocks: test_formats.py
_pydantic_ai, _json, _dump, _parts, _usage: test_formats.py
_blocks: ../../timeline/engine/test_recording.py
"""
