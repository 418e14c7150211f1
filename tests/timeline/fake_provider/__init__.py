"""Tests of `timeline/fake_provider`: a module's suite has its name, or is given here.

_app, _catalogue, _json, _provider, _reply, _stream, _wire: test_replies.py
_draft, _signature: test_thinking.py
_fault, _server: test_faults.py
_meter: test_cache.py
_script: test_by_hand.py
_summary: test_responder.py
"""
