"""Tests of `timeline/fake_provider/wires`: a module's suite has its name, or is given here.

_anthropic: ../test_real_clients.py, ../test_rules.py, ../test_reply.py
_openai: test_responses.py, test_chat.py, test_agents.py
_signature: ../test_reply.py
_wire: ../test_reply.py, ../test_rules.py
"""
