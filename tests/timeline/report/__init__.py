"""Tests of `timeline/report`: a module's suite has its name, or is given here.

_calls, _collect, _lives, _requests, _sharing, _summaries, _whole: test_report.py
_listing, _look: test_live.py
"""
