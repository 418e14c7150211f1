"""Tests of `persistence/sessions`: a module's suite has its name, or is given here.

_anthropic, _chat, _messages, _openai, _tools: test_messages.py
_bodies, _exchange, _lineage: test_request_log.py
_branch: test_pi.py, test_qwen.py
_builder, _context, _order, _pairing, _read, _session, _stretch, _times: test_recorded.py, test_damage.py
_claude: test_claude_code.py
_cursor, _droid, _grok: test_transcripts.py
_inspect, _swe_agent, _tau: test_benchmarks.py
_openhands_v1: test_openhands.py
_pieces, _source: test_size.py, test_damage.py
_returned: test_envelopes.py
"""
