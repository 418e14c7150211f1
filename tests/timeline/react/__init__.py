"""Tests of `timeline/react`: a module's suite has its name, or is given here.

_agent, _asking, _hooks, _loop: test_stops.py, test_faults.py, test_cancel.py
_calling, _settings, _signature: test_tool.py, test_declared.py
_pages: test_reading.py
"""
