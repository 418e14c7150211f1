"""Tests of `timeline/arguments`: a module's suite has its name, or is given here.

_blocks, _checks, _fixed, _given, _options: test_misuse.py, test_deep.py
_blocks: ../engine/test_flight.py, ../test_timeline.py
"""
