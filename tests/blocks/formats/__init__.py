"""Tests of `blocks/formats`: a module's suite has its name, or is given here.

_anthropic, _chat, _gemini, _responses, _langchain, _pydantic_ai, _message, _blocks, _json: test_formats.py
_dump, _langchain_content, _parts, _usage: test_formats.py
_blocks: ../../timeline/engine/test_recording.py
"""
