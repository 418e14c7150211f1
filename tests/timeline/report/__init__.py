"""Tests of `timeline/report`: a module's suite has its name, or is given here.

_collect, _requests: test_report.py
_live_data: test_live.py
_money: test_browser.py, test_live.py, test_report.py
"""
