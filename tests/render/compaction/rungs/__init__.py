"""Tests of `render/compaction/rungs`: a module's suite has its name, or is given here.

_ladder: test_ladder.py, test_checked.py, test_restore.py
_scope: test_clear.py, test_placeholder.py, test_freshness.py, test_durability.py, test_externalize.py
_summarize: test_ladder.py, test_fitting.py
"""
