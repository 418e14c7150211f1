"""Tests of `timeline/react`: a module's suite has its name, or is given here.

_agent: test_stops.py, test_faults.py, test_cancel.py, test_events.py, test_resume.py, test_spans.py
_loop: test_stops.py, test_faults.py, test_retry.py, test_resume.py
_settings: test_tool.py, test_misuse.py
_tools: test_tool.py, test_declared.py, test_events.py
"""
