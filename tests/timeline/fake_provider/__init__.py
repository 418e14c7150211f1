"""Tests of `timeline/fake_provider`: a module's suite has its name, or is given here.

_app: test_app.py, test_reply.py, test_real_clients.py
_provider: test_reply.py, test_app.py
_reply: test_reply.py
_responder: test_responder.py
"""
