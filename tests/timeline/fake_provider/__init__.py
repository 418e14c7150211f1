"""Tests of `timeline/fake_provider`: a module's suite has its name, or is given here.

_app: test_body.py, test_http_request.py, test_faults.py, test_real_clients.py
_provider: test_replies.py, test_cache.py, test_http_request.py
_reply: test_replies.py, test_faults.py, test_thinking.py
_responder: test_by_hand.py
"""
