"""Tests of `timeline/fake_provider`: a module's suite has its name, or is given here.

_app, _json, _provider, _reply: test_replies.py
_app, _fault, _server: test_faults.py
_app, _chatgpt, _json, _provider, _rules: test_real_clients.py
_provider: test_cache.py
_reply, _signature: test_thinking.py
_responder: test_by_hand.py
"""
