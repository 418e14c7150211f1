"""Tests of `timeline/replay`: a module's suite has its name, or is given here.

_asked: ../summarizers/test_replayed.py
_atomic, _bill, _dump, _options, _replay_timeline, _reserve, _result, _run, _standin: test_replay.py
_lines: test_quotes.py
_reference, _report: ../cli/test_replay_command.py
_search, _trial: test_tune.py
_surroundings: test_needs.py
_window: ../cli/test_files.py
_words: test_recall.py
"""
