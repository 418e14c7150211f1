"""Tests of `timeline/cli`: a module's suite has its name, or is given here.

_chart: test_comparison.py
_console, _screen: test_visible.py
_console, _main: test_process.py, test_store_commands.py
_copy, _export, _fork, _import, _list, _render, _search, _show, _stats, _store: test_store_commands.py
_list, _pager, _rows, _show: test_looking.py
_notes, _story: test_story.py
_completion, _parser: test_usage.py
_own: test_sessions.py
_repair, _verify: test_store_commands.py
_forget, _retain: test_retention_commands.py
_replay, _story: test_replay_command.py
_report, _serve: test_report_commands.py
"""
