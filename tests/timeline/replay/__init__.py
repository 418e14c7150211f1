"""Tests of `timeline/replay`: a module's suite has its name, or is given here.

_handover: test_handover.py
_options: test_replay.py, ../cli/test_files.py
_output: test_replay.py
_recall: test_recall.py
_coverage, _replay: test_replay.py
_summarizers: test_replay.py, ../summarizers/test_replayed.py
"""
