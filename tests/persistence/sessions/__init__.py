"""Tests of `persistence/sessions`: a module's suite has its name, or is given here.

_builder, _read, _session: test_recorded.py, test_source.py, test_envelopes.py
_grok: test_message_lists.py
_message_lists, _messages: test_message_lists.py
_source: test_source.py
"""
