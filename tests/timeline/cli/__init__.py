"""Tests of `timeline/cli`: a module's suite has its name, or is given here.

_child: test_wrap.py
_console: test_inspect.py, test_terminal.py
_gateway: test_mcp.py, test_proxy.py, test_savings.py, test_wrap.py
_inspect: test_inspect.py, test_store_commands.py
_main: test_main.py
_options: test_store_commands.py, test_main.py
_replay: test_replay_command.py
_report: test_report_commands.py
_request: test_request.py, test_store_commands.py
_replay_results: test_replay_results.py
_sessions: test_bill.py, test_files.py, test_replay_results.py
_upkeep: test_retention_commands.py, test_store_commands.py
"""
