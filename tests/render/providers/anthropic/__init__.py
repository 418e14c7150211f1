"""Tests of `render/providers/anthropic`: a module's suite has its name, or is given here.

_assemble, _count, _heard, _kinds, _parts, _provider: test_encode.py
_lead: ../../../timeline/engine/test_flight.py
_server_tools: ../../../timeline/react/test_provider_blocks.py
_read: ../../../timeline/test_timeline.py, ../../../timeline/arguments/test_misuse.py
"""
