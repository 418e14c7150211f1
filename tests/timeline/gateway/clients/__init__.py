"""Tests of `timeline/gateway/clients`; how a client is started in truth is in `tests/timeline/cli/test_wrap.py`.

_claude, _client, _codex, _opencode, _pi: test_clients.py
"""
