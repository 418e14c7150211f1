"""Tests of `timeline/cli`: a module's suite has its name, or is given here.

_child: test_wrap.py
_console: test_look.py, test_terminal.py
_gateway: test_mcp.py, test_proxy.py, test_savings.py, test_wrap.py
_look: test_look.py, test_store_commands.py
_main: test_main.py
_options: test_store_commands.py, test_main.py
_replay: test_replay_command.py
_report: test_report_commands.py
_request: test_request.py, test_store_commands.py
_results: test_results.py
_sessions: test_bill.py, test_files.py, test_results.py
_upkeep: test_retention_commands.py, test_store_commands.py
"""
