"""Tests of `timeline/gateway`: a module's suite has its name, or is given here.

_child: ../cli/test_wrap.py
_outline: test_reading.py
"""
