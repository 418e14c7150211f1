"""Tests of `timeline/react`: a module's suite has its name, or is given here.

_agent, _asking, _hooks, _loop, _outcome: test_stops.py, test_faults.py, test_cancel.py
_calling, _effects, _files, _settings, _signature: test_tool.py, test_declared.py
_pages: test_reading.py
"""
