"""Tests of `timeline/react`: a module's suite has its name, or is given here.

_agent: test_loop.py, test_cancel.py, test_events.py, test_resume.py, test_spans.py
_loop: test_loop.py, test_resume.py
_settings: test_tools.py, test_misuse.py
_schemas, _tools: test_tools.py, test_events.py
"""
