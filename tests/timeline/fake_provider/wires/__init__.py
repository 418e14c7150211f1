"""Tests of `timeline/fake_provider/wires`: a module's suite has its name, or is given here.

_anthropic: ../test_real_clients.py, ../test_rules.py, ../test_thinking.py
_openai: test_responses.py, test_chat.py, test_agents.py
_signature: ../test_thinking.py
_wire: ../test_replies.py, ../test_faults.py, ../test_rules.py
"""
