"""Tests of `timeline/gateway`: a module's suite has its name, or is given here.

_answer: test_money.py, test_passing.py
_apis: test_lineage.py, test_rewriting.py
_app: test_door.py, test_passing.py
_coding: test_passing.py
_body: test_rewriting.py
_gateway: test_passing.py, ../cli/test_proxy.py
_child: ../cli/test_wrap.py
_outline: test_reading.py
"""
