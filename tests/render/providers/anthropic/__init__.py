"""Tests of `render/providers/anthropic`: a module's suite has its name, or is given here.

_encode: test_encode.py, test_lead.py, test_wire_ids.py
_kinds, _parts: test_encode.py, test_provider.py
_provider: test_provider.py, test_assemble.py
_read: ../../../timeline/test_timeline.py, ../../../timeline/test_misuse.py
"""
