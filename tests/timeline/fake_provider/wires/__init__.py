"""Tests of `timeline/fake_provider/wires`: a module's suite has its name, or is given here.

_items: test_responses.py, test_agents.py
_messages: ../test_real_clients.py
_messages, _wire: ../test_replies.py, ../test_faults.py, ../test_rules.py
_openai: test_responses.py, test_chat.py, test_agents.py
"""
