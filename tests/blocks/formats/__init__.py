"""Tests of `blocks/formats`: a module's suite has its name, or is given here.

_anthropic, _chat, _gemini, _responses: test_formats.py, test_stream.py
_message, _pydantic_ai: test_formats.py
_message: ../../timeline/engine/test_recording.py
"""
