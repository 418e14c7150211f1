"""Tests of `persistence/sessions`: a module's suite has its name, or is given here.

_builder, _read, _session: test_recorded.py, test_damage.py, test_envelopes.py
_grok: test_transcripts.py
_lists: test_messages.py, test_mini.py, test_transcripts.py, test_benchmarks.py
_openhands_v1: test_openhands.py
_source: test_size.py, test_damage.py
"""
