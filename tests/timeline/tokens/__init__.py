"""Tests of `timeline/tokens`: a module's suite has its name, or is given here.

_counter: test_counter.py, test_requests.py, test_o200k.py, test_chunks.py, test_first_count.py
"""
