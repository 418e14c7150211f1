"""Tests of `timeline/replay`: a module's suite has its name, or is given here.

_handover: test_handover.py
_means: test_compare.py
_options: test_replay.py, ../cli/test_files.py
_output: test_replay.py
_recall: test_recall.py, test_needs.py, test_quotes.py, test_names.py
_replay: test_replay.py, test_seam.py
_summarizers: test_replay.py, ../summarizers/test_replayed.py
"""
