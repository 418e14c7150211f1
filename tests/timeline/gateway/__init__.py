"""Tests of `timeline/gateway`: a module's suite has its name, or is given here. How a client is really started is in
`tests/timeline/cli/test_wrap.py`.

_app: test_door.py, test_money.py, test_passing.py
_gateway: test_passing.py, ../cli/test_proxy.py
_reader: test_reader.py, test_mcp.py
_request: test_lineage.py, test_passing.py, test_rewriting.py
"""
